"""The records that travel between the stages. Frozen: a stage makes new ones, it changes none."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

BY_RULE = "rule"  # stands in the place of a judge where an answer is empty


@dataclass(frozen=True)
class Message:
    """One message of a chat prompt."""

    role: Literal["system", "user"]
    content: str


@dataclass(frozen=True)
class ModelInfo:
    """What an engine says about a model."""

    name: str  # as the user wrote it, engine prefix included
    engine: str
    parameters: int | None = None
    parameters_from: Literal["metadata", "name", "unknown"] = "unknown"
    digest: str | None = None
    size_bytes: int | None = None
    quantization: str | None = None
    context_length: int | None = None
    context_bytes_a_token: int | None = None  # of memory, for each token of context

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
    """Everything that shapes one generation."""

    model: str  # as the user wrote it, engine prefix included
    messages: tuple[Message, ...]
    temperature: float
    seed: int
    max_tokens: int
    json_schema: Mapping[str, Any] | None = field(default=None, hash=False)  # what the answer must be; None: free text


@dataclass(frozen=True)
class Generation:
    """What an engine gave back for one request."""

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
    variables: Mapping[str, Any] = field(repr=False)  # what templates can use
    text: str = field(repr=False)  # as a judge sees it
    cluster: str | None = None  # the factor by which scenarios belong together; None: each stands for itself


@dataclass(frozen=True)
class Cell:
    """One (model × prompt version × scenario), at one repeat."""

    key: str
    model: ModelInfo
    prompt: str
    prompt_digest: str
    scenario: Scenario
    request: GenerationRequest
    n_tips: int
    diversity: bool
    base_seed: int  # what the user gave; the request's own seed is derived from it
    repeat: int

    @property
    def label(self) -> str:
        again = f" #{self.repeat + 1}" if self.repeat else ""
        return f"{self.model.name} × {self.prompt} × {self.scenario.id}{again}"


@dataclass(frozen=True)
class Answer:
    """A cell that was answered, even if nothing usable could be read from the answer."""

    cell: Cell
    generation: Generation
    candidates: tuple[str, ...]
    found: int  # candidates in the answer, before cutting to the number asked for
    format_ok: bool
    read_as: str  # how the candidates were found: "contract", "list", …
    diversity: float | None  # None where there are fewer than two candidates


@dataclass(frozen=True)
class Failure:
    """A cell that the machinery could not get an answer for."""

    cell: Cell
    reason: str


Outcome = Answer | Failure


@dataclass(frozen=True)
class StoredCandidates:
    """The candidates of a stored cell, with what a judge needs beside them."""

    scenario: str
    format_ok: bool
    texts: tuple[str, ...]


@dataclass(frozen=True)
class RubricText:
    """A rubric as it is kept with every run; `lowest` is the score of an answer without a candidate."""

    name: str
    digest: str
    text: str = field(repr=False)
    lowest: Mapping[str, float]


@dataclass(frozen=True)
class JudgeNote:
    """That a judge scored a run, by which rubric, in which batch, and whether that counts."""

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
    judges: tuple[JudgeNote, ...]  # everybody who scored it, provisional or not
    repeat: int
    settings: Mapping[str, str] = field(default_factory=dict)  # what else shaped the answer: temperature, n_tips, …
    cluster: str | None = None  # the factor by which scenarios belong together
    model_bytes: int | None = None
    parameters: int | None = None

    @property
    def is_empty(self) -> bool:
        """An answer without a usable candidate: there is nothing to judge, it scores the rubric's minimum."""
        return self.failure is None and self.candidates == 0

    def is_counted(self, rubric_digest: str) -> bool:
        """Whether a counted judge has scored it by this rubric; a changed rubric means judging again."""
        return self.judged_rubric == rubric_digest and "composite" in self.metrics

    def awaits_judge(self, rubric_digest: str) -> bool:
        return self.candidates > 0 and not self.is_counted(rubric_digest)


@dataclass(frozen=True)
class GoldItem:
    """An anchor: a text with the scores that it should get, and why."""

    id: str
    scenario: str  # its text, as the judge sees it
    candidate: str
    scores: Mapping[str, int]
    reason: str
    private: bool = False  # of a team's own file; its scores never leave the machine


@dataclass(frozen=True)
class Slot:
    """One place in a batch: what stands there, which the judge never sees."""

    slot: str
    run_id: str  # empty for an anchor
    candidate: int
    digest: str  # of the candidate's text, as it is shown
    scenario_digest: str
    flags: Mapping[str, bool]  # as code checked them
    kind: Literal["candidate", "anchor", "repeat"] = "candidate"
    of: str = ""  # the anchor's id, or the slot that this one repeats
    reference: Mapping[str, int] = field(default_factory=dict)  # an anchor's scores, unless it is private


@dataclass(frozen=True)
class Batch:
    """What was given to a judge, and how to take the scores back."""

    id: str
    judge: str
    provisional: bool
    seed: int
    rubric_digest: str
    created_ms: int
    secret: str  # part of the shuffle's seed, so that nobody can undo it from the file
    slots: tuple[Slot, ...]


@dataclass(frozen=True)
class Verdict:
    """One judge's scores of one candidate; flags as code checked them unless the judge overruled."""

    slot: Slot
    scores: Mapping[str, int]
    flags: Mapping[str, bool]
    overruled: tuple[str, ...]
    composite: float
    note: str
