"""What a collection will do: the cells that are missing, and about how long they will take."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from tipbench.records import Cell, ModelInfo, StoredCell

# Rules of thumb for models that were never timed here: a CPU reads all weights for each token, at some
# 10 GB/s; weights come from disk at some 0.5 GB/s; a short text has some 40 tokens.
_BYTES_A_SECOND = 10e9
_LOADED_A_SECOND = 0.5e9
_TOKENS_A_CANDIDATE = 40
_PROMPT_TOKENS_A_TOKEN = 3  # a CPU reads a prompt some three times as fast as it writes
_CHARS_A_TOKEN = 4
_BYTES_A_PARAMETER = 0.6


@dataclass(frozen=True)
class Plan:
    """The cells to generate now, those that are stored already, and the time it may take."""

    models: tuple[ModelInfo, ...]
    to_do: tuple[Cell, ...]
    stored: int
    failed_before: int  # among the stored ones
    seconds: float
    measured: bool  # the estimate comes from earlier cells of all these models

    @property
    def cells(self) -> int:
        return len(self.to_do) + self.stored


def make_plan(
    models: Sequence[ModelInfo], cells: Sequence[Cell], stored: Sequence[StoredCell], retry_failed: bool = False
) -> Plan:
    """Leaves out what is stored: the same key is never answered twice; failures are tried again on request."""
    known = {cell.key: cell for cell in stored if not (retry_failed and cell.failure is not None)}
    to_do = tuple(cell for cell in cells if cell.key not in known)
    failed = sum(1 for cell in cells if cell.key in known and known[cell.key].failure is not None)
    timed = _seconds_by_model(stored, cells[0].request.max_tokens if cells else 0)
    wanted = Counter(cell.model.name for cell in to_do)
    seconds = 0.0
    for model in models:
        if wanted[model.name]:
            one = timed.get(model.name) or _guess(next(cell for cell in to_do if cell.model.name == model.name))
            seconds += one * wanted[model.name]
    measured = bool(to_do) and all(model in timed for model in wanted)
    return Plan(tuple(models), to_do, len(cells) - len(to_do), failed, seconds, measured)


def _seconds_by_model(stored: Sequence[StoredCell], max_tokens: int) -> Mapping[str, float]:
    """From earlier cells that were allowed answers as long as these."""
    times: dict[str, list[float]] = {}
    for cell in stored:
        if "gen/wall_s" in cell.metrics and cell.settings.get("max_tokens") == str(max_tokens):
            times.setdefault(cell.model, []).append(cell.metrics["gen/wall_s"])
    return {model: fmean(seconds) for model, seconds in times.items()}


def _guess(cell: Cell) -> float:
    size = cell.model.size_bytes or (cell.model.parameters or 1e9) * _BYTES_A_PARAMETER
    read = sum(len(message.content) for message in cell.request.messages) / _CHARS_A_TOKEN / _PROMPT_TOKENS_A_TOKEN
    tokens = read + min(cell.request.max_tokens, cell.n_tips * _TOKENS_A_CANDIDATE)
    return size / _LOADED_A_SECOND + tokens * size / _BYTES_A_SECOND
