"""The leaderboard per (model, prompt): what the scores show, what they can't show, and what is missing."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tipbench.bench.compare.comparison import Comparison, compare_rows, in_order_of_means, not_compared
from tipbench.bench.compare.effects import GridEffects, grid_effects
from tipbench.bench.compare.leaderboard_row import LeaderboardRow, make_leaderboard_rows
from tipbench.bench.compare.rows import Rows, make_rows
from tipbench.bench.compare.snapshot import Snapshot
from tipbench.bench.records import BY_CODE, LEAST_AGREEMENT, StoredCell
from tipbench.bench.suites.rubric import Rubric
from tipbench.bench.tracking.decisions import DecisionSummary
from tipbench.core.identity import SHORT
from tipbench.statistics.interval import Interval

if TYPE_CHECKING:
    from pandas import DataFrame

    from tipbench.bench.compare.answer import BoardAnswer

_STOPPED_BY_SCORES = (
    "Which rows were judged, and how often, followed from the scores, so only the decision's own accounts are valid: "
    "no intervals or tests for a fixed sample are shown."
)
_ENOUGH_SHARED = 8  # cells that several judges scored, to say whether they agree
Kappas = Mapping[str, Mapping[str, float | None]]  # judge → criterion → κ with the anchors; empty: not assessable


@dataclass(frozen=True)
class Leaderboard:
    """The rows, best composite first, with the judges and the rubric behind their scores."""

    experiment: str
    rubric: str
    rubric_digest: str
    scales: Mapping[str, Interval]  # score → its lowest and highest value; the composite is last
    flags: tuple[str, ...]  # the scores that are flags
    judges: tuple[str, ...]
    kappas: Kappas
    quarantined: Mapping[str, int]  # judge → cells without a counted score, because the judge's are in quarantine
    provisional: bool  # the scores are provisional ones: no others exist, or they were asked for
    agreement: (
        float | None
    )  # Krippendorff's α of the judges' composites; None: fewer than two judges share enough cells
    hidden_provisional: Mapping[str, int]  # judge → cells with provisional scores, where counted ones are shown instead
    other_rubrics: int  # cells scored by another rubric, which count as pending here
    uneven: bool  # rows were scored on different scenarios, so their means compare different things
    rows: tuple[LeaderboardRow, ...]
    grid: Rows = field(repr=False)  # the cells behind the rows, in their order
    comparison: Comparison
    effects: GridEffects | str  # or the reason why there are none
    decision: DecisionSummary | None = None  # in rounds: it has the answer, and nothing here is tested or estimated

    @property
    def scores(self) -> tuple[str, ...]:
        return tuple(self.scales)

    @property
    def judged(self) -> int:
        return sum(row.judged for row in self.rows)

    @property
    def empty(self) -> int:
        """The number of judged answers without a usable candidate."""
        return sum(row.empty for row in self.rows)

    @property
    def is_by_code(self) -> bool:
        """Whether code alone gave the scores, and nobody has read a text."""
        return self.judges == (BY_CODE,)

    @property
    def judges_disagree(self) -> bool:
        """Whether the judges agree so little that their means say next to nothing."""
        return self.agreement is not None and self.agreement < LEAST_AGREEMENT

    @property
    def has_counted_scores(self) -> bool:
        """Whether a judge's scores count for any cell, even if provisional ones are shown."""
        return self.judged > self.empty

    @property
    def pending(self) -> int:
        return sum(row.pending for row in self.rows)

    @property
    def failed(self) -> int:
        return sum(row.failed for row in self.rows)

    @property
    def missing(self) -> int:
        return sum(row.missing for row in self.rows)

    @property
    def gaps(self) -> int:
        """The number of cells without a score, which could change the means."""
        return sum(len(row.cells) - row.scored for row in self.grid.rows) + self.missing

    @property
    def leader(self) -> LeaderboardRow | None:
        """The row with the highest mean; None while nothing is scored. `top` holds all rows that may be the best."""
        return next((one for one in self.rows if one.composite is not None), None)

    @property
    def answer(self) -> "BoardAnswer":
        """What the scores decide, and what to do next."""
        from tipbench.bench.compare.answer import answer_of

        return answer_of(self)

    def to_frame(self) -> "DataFrame":
        """Return a DataFrame with a line per row: means, the composite's interval, what is missing. Needs pandas."""
        from tipbench.bench.compare.scores import frame_of

        return frame_of([_line(self, one) for one in self.rows])

    def is_behind(self, row: LeaderboardRow) -> bool:
        """Whether the row is shown not to be the best: outside the top group, or out in the decision."""
        if self.decision:
            return f"{row.model} × {row.prompt}" in self.decision.out
        return bool(self.top) and not (row.rank and row.rank.top)

    @property
    def top(self) -> tuple[LeaderboardRow, ...]:
        """The rows that may be the best; empty where that can't be determined."""
        return tuple(one for one in self.rows if one.rank and one.rank.top)


def _line(board: Leaderboard, row: LeaderboardRow) -> dict[str, Any]:
    interval = row.intervals.get("composite")
    return {
        "model": row.model,
        "prompt": row.prompt,
        **{name: row.means.get(name) for name in board.scores},
        "composite_low": interval.low if interval else None,
        "composite_high": interval.high if interval else None,
        "may_be_best": bool(row.rank and row.rank.top),
        "scored": row.scored,
        "pending": row.pending,
        "failed": row.failed,
        "missing": row.missing,
        "empty": row.empty,
    }


def row_label(board: Leaderboard, row: LeaderboardRow) -> str:
    return f"{row.model} × {prompt_label(board, row)}"


def prompt_label(board: Leaderboard, row: LeaderboardRow) -> str:
    """Return the prompt's version, plus what distinguishes this row from others of the same model and version."""
    siblings = [s for s in board.rows if (s.model, s.prompt) == (row.model, row.prompt)]
    label = row.prompt
    if len({s.prompt_digest for s in siblings}) > 1:
        label += f"@{row.prompt_digest[:SHORT]}"
    varying = [key for key in row.settings if len({s.settings.get(key) for s in siblings}) > 1]
    settings = ", ".join(f"{key}={row.settings[key][:SHORT]}" for key in varying)
    return f"{label} ({settings})" if settings else label


def leaderboard_of(snapshot: Snapshot, rubric: Rubric, provisional: bool = False) -> Leaderboard:
    """Make the leaderboard of an experiment; with `provisional`, of provisional scores even if there are others."""
    kappas = snapshot.kappas(rubric.digest)
    return leaderboard(snapshot.experiment.name, snapshot.cells, rubric, kappas, provisional, snapshot.decision)


def leaderboard(
    experiment: str,
    cells: Sequence[StoredCell],
    rubric: Rubric,
    kappas: Kappas,
    provisional: bool = False,
    decision: DecisionSummary | None = None,
) -> Leaderboard:
    grid = make_rows(cells, rubric, provisional)
    grid = grid.in_order(_order_of(decision, grid) if decision else in_order_of_means(grid))
    comparison = not_compared(grid, notes=[_STOPPED_BY_SCORES]) if decision else compare_rows(grid)
    rows = make_leaderboard_rows(grid, comparison.ranks, rubric.digest, fixed_sample=decision is None)
    judges = _judges(cells, rubric, grid.provisional)
    return Leaderboard(
        experiment=experiment,
        rubric=rubric.name,
        rubric_digest=rubric.digest,
        scales=grid.scales,
        flags=tuple(rubric.flags),
        judges=judges,
        kappas={judge: kappas.get(judge, {}) for judge in judges},
        quarantined=_quarantined(cells, rubric),
        provisional=grid.provisional,
        agreement=None if grid.provisional else _agreement(cells, judges),
        hidden_provisional={} if grid.provisional else _provisional_cells(cells, rubric),
        other_rubrics=sum(cell.judged_rubric not in (None, rubric.digest) and not cell.is_empty for cell in cells),
        uneven=len({row.scenarios for row in rows if row.scenarios}) > 1,
        rows=tuple(rows),
        grid=grid,
        comparison=comparison,
        effects="a decision judges some rows on more scenarios than others" if decision else grid_effects(grid),
        decision=decision,
    )


def _order_of(decision: DecisionSummary, grid: Rows) -> list[int]:
    ranks = {name: rank for rank, name in enumerate(decision.rows)}
    return sorted(
        range(len(grid.rows)), key=lambda index: (ranks.get(" × ".join(grid.rows[index].name), len(ranks)), index)
    )


def _judges(cells: Sequence[StoredCell], rubric: Rubric, provisional: bool) -> tuple[str, ...]:
    found = {
        note.judge
        for cell in cells
        for note in cell.judges
        if note.rubric_digest == rubric.digest and note.provisional == provisional
        if note.counted or note.provisional
    }
    if not provisional and any(cell.judged_by == BY_CODE and cell.is_counted(rubric.digest) for cell in cells):
        found.add(BY_CODE)
    return tuple(sorted(found))


def _agreement(cells: Sequence[StoredCell], judges: Sequence[str]) -> float | None:
    """Return how far the judges agree on cells that several of them scored, by their composites in hundredths."""
    if len(judges) < 2:
        return None
    keys = [f"judge/{judge}/composite" for judge in judges]
    shared = [cell.metrics for cell in cells if sum(key in cell.metrics for key in keys) > 1]
    if len(shared) < _ENOUGH_SHARED:
        return None
    from tipbench.statistics.agreement import krippendorff_alpha

    ratings = [[round(100 * found[key]) if key in found else None for found in shared] for key in keys]
    return krippendorff_alpha(ratings, "interval")


def _provisional_cells(cells: Sequence[StoredCell], rubric: Rubric) -> dict[str, int]:
    """Count the cells that each provisional judge has scored."""
    found = Counter(
        note.judge for cell in cells for note in cell.judges if note.provisional and note.rubric_digest == rubric.digest
    )
    return dict(sorted(found.items()))


def _quarantined(cells: Sequence[StoredCell], rubric: Rubric) -> dict[str, int]:
    found = Counter(
        note.judge
        for cell in cells
        if not cell.is_counted(rubric.digest)
        for note in cell.judges
        if note.rubric_digest == rubric.digest and not note.provisional and not note.counted
    )
    return dict(sorted(found.items()))
