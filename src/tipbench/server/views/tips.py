"""The texts of a leaderboard's best rows as candidates for the recommender, each with the run it came from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tipbench.bench.compare.leaderboard import Leaderboard
from tipbench.bench.compare.leaderboard_row import LeaderboardRow
from tipbench.bench.records import StoredCell
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.tracking.runs import CELL, KIND, stored_candidates
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import InvalidInput, NotFound
from tipbench.core.identity import data_digest
from tipbench.core.untrusted import printable
from tipbench.recommender.records import Candidate, Source

SCENARIO = "scenario"  # a category that every suite has
_ID_LENGTH = 32
_MAX_CATEGORY_LENGTH = 128


@dataclass(frozen=True)
class Tip:
    candidate: Candidate
    text: str  # as the model wrote it: untrusted


@dataclass(frozen=True)
class Tips:
    rows: tuple[LeaderboardRow, ...]  # that the texts come from
    tips: tuple[Tip, ...]
    failed: int  # cells without texts, because they failed
    empty: int


def best_row_indices(board: Leaderboard, top: int, model: str | None = None, prompt: str | None = None) -> list[int]:
    """Return the indices of the best `top` rows, optionally of one model or one prompt.

    Raises InvalidInput if no row matches, or if there are more than `top` and none is scored.
    """
    matching = [
        index for index, row in enumerate(board.rows) if model in (None, row.model) and prompt in (None, row.prompt)
    ]
    if not matching:
        wanted = " × ".join(name for name in (model, prompt) if name is not None)
        known = ", ".join(dict.fromkeys(f"{one.model} × {one.prompt}" for one in board.rows))
        raise InvalidInput(f"no row of '{board.experiment}' is {wanted}; there are {known}")
    if len(matching) > top and all(board.rows[index].composite is None for index in matching):
        raise InvalidInput(
            f"nothing of '{board.experiment}' that could be taken is scored yet, so there is no best row; "
            f"judge it first, or name one row by --model and --prompt"
        )
    return matching[:top]


def tips_of(
    store: RunStore, experiment: Experiment, board: Leaderboard, indices: Sequence[int], category: str | None
) -> Tips:
    """Return all texts of these rows.

    `category` names a factor of the suite, or the scenario; None is the factor that the suite clusters its scenarios
    by, else the scenario.
    """
    _check_category(board, category)
    cells = [cell for index in indices for cell in board.grid.rows[index].cells]
    texts = _texts(store, experiment, [cell for cell in cells if cell.failure is None and not cell.is_empty])
    return Tips(
        rows=tuple(board.rows[index] for index in indices),
        tips=tuple(
            tip
            for cell in cells
            if cell.run_id in texts
            for tip in _tips(cell, texts[cell.run_id], _category(cell, category))
        ),
        failed=sum(cell.failure is not None for cell in cells),
        empty=sum(cell.is_empty for cell in cells),
    )


def _texts(store: RunStore, experiment: Experiment, cells: Sequence[StoredCell]) -> dict[str, tuple[str, ...]]:
    wanted = {cell.run_id for cell in cells}
    runs = (run for run in store.iter_runs(experiment, {KIND: CELL}) if run.run_id in wanted)
    texts = {run.run_id: stored_candidates(store, run).texts for run in runs}
    if len(texts) < len(wanted):
        raise NotFound(
            f"run {min(wanted - texts.keys())} is gone from '{experiment.name}'; "
            f"read it anew: tipbench compare --experiment {experiment.name} --refresh"
        )
    return texts


def _tips(cell: StoredCell, texts: Sequence[str], category: str) -> Iterator[Tip]:
    source = Source(run_id=cell.run_id, cell=cell.key)
    for index, text in enumerate(texts):
        id = data_digest([cell.run_id, index, text])[:_ID_LENGTH]
        yield Tip(Candidate(id=id, category=category, len_chars=len(text), source=source), text)


def _category(cell: StoredCell, category: str | None) -> str:
    factor = category or cell.cluster
    level = cell.factors.get(factor, cell.scenario) if factor else cell.scenario
    return printable(level, _MAX_CATEGORY_LENGTH)


def _check_category(board: Leaderboard, category: str | None) -> None:
    known = sorted(board.grid.levels)
    if category not in (None, SCENARIO, *known):
        raise InvalidInput(f"--category '{category}' is none of {', '.join([*known, SCENARIO])}")
