"""Immutable records that are passed between the stages of the bench."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

SECONDS_A_JUDGEMENT = 45  # that a person takes for one candidate
BY_RULE = "rule"  # the judge's name in scores of empty answers
BY_CODE = "code"  # the judge's name in scores by a rubric of checks alone


@dataclass(frozen=True)
class Message:
    """One message of a chat prompt."""

    role: Literal["system", "user"]
    content: str


@dataclass(frozen=True)
class ModelInfo:
    """A model as its engine describes it."""

    name: str  # as the user wrote it, engine prefix included
    engine: str
    parameters: int | None = None
    parameters_from: Literal["metadata", "name", "unknown"] = "unknown"
    digest: str | None = None
    size_bytes: int | None = None
    quantization: str | None = None
    context_length: int | None = None
    context_bytes_a_token: int | None = None  # memory per token of context

    @property
    def billions(self) -> float | None:
        return None if self.parameters is None else self.parameters / 1e9


@dataclass(frozen=True)
class ResidentModel:
    """A model that an engine holds in memory right now."""

    name: str
    size_bytes: int = 0
    vram_bytes: int = 0


@dataclass(frozen=True)
class GenerationRequest:
    """Everything that determines one generation."""

    model: str  # as the user wrote it, engine prefix included
    messages: tuple[Message, ...]
    temperature: float
    seed: int
    max_tokens: int
    json_schema: Mapping[str, Any] | None = field(default=None, hash=False)  # schema of the answer; None: free text


@dataclass(frozen=True)
class Generation:
    """An engine's answer to one request."""

    text: str
    finish_reason: str
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    load_s: float | None = None
    generate_s: float | None = None


@dataclass(frozen=True)
class Scenario:
    """One fixed input that all cells share."""

    id: str
    factors: Mapping[str, str]  # factor → level id
    variables: Mapping[str, Any] = field(repr=False)  # template variables
    text: str = field(repr=False)  # as a judge sees it
    cluster: str | None = None  # the factor that groups dependent scenarios; None: all are independent


@dataclass(frozen=True)
class Cell:
    """One (model × prompt version × scenario) of one repeat."""

    key: str
    model: ModelInfo
    prompt: str
    prompt_digest: str
    scenario: Scenario
    request: GenerationRequest
    n_tips: int
    diversity: bool
    base_seed: int  # the user's seed, from which the request's seed is derived
    repeat: int

    @property
    def label(self) -> str:
        """Its name for people: what differs from one cell to the next comes first, because tables cut long names."""
        again = f" #{self.repeat + 1}" if self.repeat else ""
        return f"{self.scenario.id}{again} · {self.model.name} × {self.prompt}"


@dataclass(frozen=True)
class Answer:
    """A cell that was answered, even if no candidate could be read from the answer."""

    cell: Cell
    generation: Generation
    candidates: tuple[str, ...]
    found: int  # candidates in the answer, before truncation to the requested number
    format_ok: bool
    read_as: str  # how the candidates were found: "contract", "list", …
    diversity: float | None  # None if there are fewer than two candidates
    checks: tuple[Mapping[str, bool], ...] = ()  # each candidate's flags, where code alone scores
    scores: Mapping[str, float] = field(default_factory=dict)  # the cell's, where code alone scores


@dataclass(frozen=True)
class Failure:
    """A cell for which no answer could be obtained."""

    cell: Cell
    reason: str


Outcome = Answer | Failure


@dataclass(frozen=True)
class StoredCandidates:
    """The candidates of a stored cell, with what a judge needs to score them."""

    scenario: str
    format_ok: bool
    texts: tuple[str, ...]
    scenario_id: str = ""


@dataclass(frozen=True)
class RubricText:
    """A rubric as it is stored with every run; `lowest` holds the scores of an answer without a candidate."""

    name: str
    digest: str
    text: str = field(repr=False)
    lowest: Mapping[str, float]


@dataclass(frozen=True)
class JudgeNote:
    """Notes that a judge scored a run: by which rubric, in which batch, and whether the scores count."""

    judge: str
    rubric_digest: str
    batch: str
    provisional: bool
    counted: bool = True  # neither provisional nor in quarantine


@dataclass(frozen=True)
class StoredCell:
    """A cell as it was read back from the tracking store."""

    run_id: str
    key: str
    model: str
    prompt: str
    prompt_digest: str
    scenario: str
    factors: Mapping[str, str]
    started_ms: int
    failure: str | None
    candidates: int
    pending: bool
    metrics: Mapping[str, float]
    judged_rubric: str | None  # digest of the rubric behind the score metrics
    judged_by: str | None
    judges: tuple[JudgeNote, ...]  # all judges that scored it, provisional or not
    repeat: int
    settings: Mapping[str, str] = field(
        default_factory=dict
    )  # other settings that affect the answer: temperature, n_tips, …
    cluster: str | None = None  # the factor that groups dependent scenarios
    model_bytes: int | None = None
    parameters: int | None = None
    checks: str = ""  # each candidate's flags as code checked them, where code alone scores; see `flags_by_code`

    @property
    def is_empty(self) -> bool:
        """Whether it was answered without a usable candidate: nothing to judge, it gets the rubric's minimum."""
        return self.failure is None and self.candidates == 0

    def is_counted(self, rubric_digest: str) -> bool:
        """Whether it has counted scores by this rubric; a changed rubric means judging again."""
        return self.judged_rubric == rubric_digest and "composite" in self.metrics

    def awaits_judge(self, rubric_digest: str) -> bool:
        return self.candidates > 0 and not self.is_counted(rubric_digest)


@dataclass(frozen=True)
class GoldItem:
    """An anchor: a text with its reference scores and the reason for them."""

    id: str
    scenario: str  # its text, as the judge sees it
    scenario_id: str
    candidate: str
    scores: Mapping[str, int]
    reason: str
    private: bool = False  # from a team's own file; its scores never leave the machine
    by: tuple[str, ...] = ()  # judges whose scores these are; it never checks them


@dataclass(frozen=True)
class Slot:
    """One position in a batch and what is behind it, which the judge never sees."""

    slot: str
    run_id: str  # empty for an anchor
    candidate: int
    digest: str  # of the candidate's text, as it is shown
    scenario_digest: str
    flags: Mapping[str, bool]  # as checked by code
    kind: Literal["candidate", "anchor", "repeat"] = "candidate"
    of: str = ""  # the anchor's id, or the slot that this one repeats
    reference: Mapping[str, int] = field(default_factory=dict)  # an anchor's scores, unless it is private


@dataclass(frozen=True)
class Batch:
    """What a judge was given, and how to map the scores back to the runs."""

    id: str
    judge: str
    provisional: bool
    seed: int
    rubric_digest: str
    created_ms: int
    secret: str  # part of the shuffle's seed, so that the order can't be reconstructed from the file
    slots: tuple[Slot, ...]
    judge_kind: str = ""  # person, agent, model and so on; "": not recorded


@dataclass(frozen=True)
class Verdict:
    """One judge's scores of one candidate; flags are as checked by code unless the judge overruled them."""

    slot: Slot
    scores: Mapping[str, int]
    flags: Mapping[str, bool]
    overruled: tuple[str, ...]
    composite: float
    note: str


LEAST_AGREEMENT = 0.4  # α of judges whose scores are worth averaging


def experiment_command(experiment: str, command: str, *words: str) -> str:
    """Return a command on this experiment, as it can be pasted into a shell."""
    return shlex.join(("tipbench", command, "--experiment", experiment, *words))


@dataclass(frozen=True)
class NextStep:
    """What to do now, and what it costs."""

    text: str
    command: str | None = None
    judgements: int | None = None  # that it takes; None where that is not known
    reads_texts: bool = False  # the command writes a report to read the texts in

    def __str__(self) -> str:
        return f"{self.text}: {self.command}" if self.command else self.text
