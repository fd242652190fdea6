"""Plans a collection: which cells are missing, and about how long they will take."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set, Sized
from dataclasses import dataclass, field
from typing import Protocol

from tipbench.bench.records import Answer, Cell, Failure, ModelInfo, Outcome, StoredCell
from tipbench.bench.tracking.runs import StoredOutcome
from tipbench.core.text import counted

# Rules of thumb for models that were never timed here: a CPU reads all weights for each token, at about
# 10 GB/s; weights load from disk at about 0.5 GB/s; a short text has about 40 tokens.
_BYTES_PER_SECOND = 10e9
_LOADED_PER_SECOND = 0.5e9
_TOKENS_PER_CANDIDATE = 40
_PROMPT_TOKENS_PER_TOKEN = 3  # a CPU reads a prompt about three times as fast as it writes
_CHARS_PER_TOKEN = 4
_BYTES_PER_PARAMETER = 0.6
_FAILURES_SHOWN = 5
_NAMED = 6  # scenarios in a sentence


class Cells(Sized, Iterable[Cell], Protocol):
    """An ordered collection of cells that are created lazily."""


@dataclass(frozen=True)
class Plan:
    """The cells to generate, how many are already stored, and the estimated time."""

    models: tuple[ModelInfo, ...]
    to_do: Cells
    stored: int
    failed_before: int  # among the stored cells
    seconds: float
    measured: bool  # the estimate is based on earlier cells of all these models
    new_scenarios: tuple[str, ...] = ()  # that the experiment has no cell of yet, if it has cells of others

    @property
    def what_is_stored(self) -> str:
        """Say how many cells are stored already, and which of the others are of scenarios that are new here."""
        text = f"{self.stored} of {self.cells} cells are stored already"
        named = ", ".join(self.new_scenarios[:_NAMED]) + (", …" if len(self.new_scenarios) > _NAMED else "")
        return f"{text}; new are those of {named}." if self.new_scenarios else f"{text}."

    @property
    def cells(self) -> int:
        return len(self.to_do) + self.stored


@dataclass(frozen=True)
class _Missing:
    """The cells that are not stored yet."""

    cells: Cells
    known: Set[str]
    count: int

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Cell]:
        return (cell for cell in self.cells if cell.key not in self.known)


def make_plan(
    models: Sequence[ModelInfo],
    cells: Cells,
    stored: Iterable[StoredCell | StoredOutcome],
    retry_failed: bool = False,
    whole_grid: bool = True,
) -> Plan:
    """Plan the cells that are not stored: no key is ever answered twice; failures are retried only on request.

    A whole grid has equally many cells of each model, so that they need not be created to be counted.
    """
    first = next(iter(cells), None)
    times = _Times(first.request.max_tokens if first else 0)
    failed: dict[str, bool] = {}
    seen: set[str] = set()  # scenarios
    for cell in stored:
        times.add(cell)
        seen.add(cell.scenario)
        failed[cell.key] = failed.get(cell.key, True) and cell.failure is not None
    known = {key for key, has_failed in failed.items() if not (retry_failed and has_failed)}
    wanted: Counter[str] = Counter()  # cells by model
    new: dict[str, None] = {}  # scenarios, in order
    failed_before = 0
    if whole_grid and not known:
        wanted.update({model.name: len(cells) // len(models) for model in models})
    else:
        for one in cells:
            if one.key in known:
                failed_before += failed[one.key]
                continue
            wanted[one.model.name] += 1
            if known and one.scenario.id not in seen:
                new[one.scenario.id] = None
    to_do = _Missing(cells, known, wanted.total())
    seconds = sum(
        (times.of(model) or _estimate(first, model)) * wanted[model.name]
        for model in models
        if first and wanted[model.name]
    )
    measured = bool(to_do) and all(times.of(model) for model in models if wanted[model.name])
    return Plan(tuple(models), to_do, len(cells) - len(to_do), failed_before, seconds, measured, tuple(new))


class _Times:
    """The mean time by model of earlier cells with the same limit on the length of answers."""

    def __init__(self, max_tokens: int) -> None:
        self._max_tokens = str(max_tokens)
        self._sums: dict[str, tuple[float, int]] = {}

    def add(self, cell: StoredCell | StoredOutcome) -> None:
        if "gen/wall_s" in cell.metrics and cell.settings.get("max_tokens") == self._max_tokens:
            seconds, count = self._sums.get(cell.model, (0.0, 0))
            self._sums[cell.model] = (seconds + cell.metrics["gen/wall_s"], count + 1)

    def of(self, model: ModelInfo) -> float | None:
        seconds, count = self._sums.get(model.name, (0.0, 0))
        return seconds / count if count else None


def _estimate(cell: Cell, model: ModelInfo) -> float:
    """Estimate the seconds for such a cell on a model that was never timed."""
    size = model.size_bytes or (model.parameters or 1e9) * _BYTES_PER_PARAMETER
    read = sum(len(message.content) for message in cell.request.messages) / _CHARS_PER_TOKEN / _PROMPT_TOKENS_PER_TOKEN
    tokens = read + min(cell.request.max_tokens, cell.n_tips * _TOKENS_PER_CANDIDATE)
    return size / _LOADED_PER_SECOND + tokens * size / _BYTES_PER_SECOND


@dataclass
class Collected:
    """The result of a collection."""

    planned: int
    stored_before: int
    failed_before: int
    undelivered: int = 0  # still in the journal, because MLflow was unreachable
    outages: int = 0
    superseded: int = 0  # also generated by another host at the same time
    answered: int = 0
    empty: int = 0
    candidates: int = 0
    failed_now: int = 0
    seconds: float = 0.0
    first_failures: list[Failure] = field(default_factory=list)

    @property
    def failed(self) -> int:
        return self.failed_now + self.failed_before

    @property
    def is_complete(self) -> bool:
        return not self.failed and not self.undelivered

    @property
    def in_short(self) -> str:
        parts = [f"{counted(self.answered, 'cell')} answered"]
        if self.stored_before:
            parts.append(f"{self.stored_before} stored before")
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.undelivered:
            parts.append(f"{self.undelivered} not in MLflow yet, because it does not answer")
        return ", ".join(parts)

    def count(self, outcome: Outcome) -> None:
        if isinstance(outcome, Answer):
            self.answered += 1
            self.empty += not outcome.candidates
            self.candidates += len(outcome.candidates)
        else:
            self.failed_now += 1
            if len(self.first_failures) < _FAILURES_SHOWN:
                self.first_failures.append(outcome)
