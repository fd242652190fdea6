"""What the server shows of experiments, kept in memory as long as nothing has changed in the store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tipbench.bench.compare.html.page import Report
from tipbench.bench.compare.leaderboard import Leaderboard, leaderboard_of
from tipbench.bench.compare.messages import as_data
from tipbench.bench.compare.snapshot import rubric_of
from tipbench.bench.judge.settle import effective_verdicts
from tipbench.bench.records import StoredCell
from tipbench.bench.report import make_report
from tipbench.bench.suites.load import built_in_suites, load_suite
from tipbench.bench.tracking.batches import applied_batches, batch_runs
from tipbench.bench.tracking.interface import Experiment, StoredRun
from tipbench.bench.tracking.runs import CELL, KIND, stored_candidates
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import InvalidInput, NotFound, StoredDataDamaged, TrackingUnreachable
from tipbench.core.paths import decisions_folder
from tipbench.core.text import utc_minute
from tipbench.core.untrusted import json_text
from tipbench.recommender.log.reward_statistics import RewardStatisticsReader
from tipbench.server.views.rewards import Rewards, rewards_of
from tipbench.server.views.snapshots import SnapshotEntry, SnapshotMemoryCache
from tipbench.server.views.store_provider import StoreProvider

STATES = ("judged", "pending", "failed", "empty")
MOST_RUNS = 500  # a page


@dataclass(frozen=True)
class ExperimentLine:
    """One experiment in the list."""

    name: str
    created_ms: int
    suite: str
    cells: int
    judged: int
    pending: int
    failed: int
    problem: str = ""  # why its runs can't be read


@dataclass(frozen=True)
class RunFilter:
    """Which runs; what is None does not matter."""

    model: str | None = None
    prompt: str | None = None
    scenario: str | None = None
    state: str | None = None  # judged, pending, failed or empty


@dataclass(frozen=True)
class RunPage:
    """A page of an experiment's runs, the oldest first."""

    cells: Sequence[StoredCell]
    total: int  # that fit the filter
    offset: int
    limit: int


@dataclass(frozen=True)
class RunLevels:
    """What the runs of an experiment can be filtered by."""

    models: Sequence[str]
    prompts: Sequence[str]
    scenarios: Sequence[str]


@dataclass(frozen=True)
class RunDetail:
    """One run with its texts. What the model wrote is untrusted."""

    cell: StoredCell
    experiment_id: str
    prompt: str
    raw: str | None  # None: the cell failed
    candidates: Sequence[str]
    scenario: str
    params: Mapping[str, str]
    tags: Mapping[str, str]
    scores: Sequence["CandidateScores"]


@dataclass(frozen=True)
class CandidateScores:
    """What one judge gave one candidate of a run."""

    candidate: int
    judge: str
    counted: bool
    scores: Mapping[str, int]
    flags: Mapping[str, bool]
    composite: float
    note: str  # untrusted


class Boards:
    """Reading, for API and pages. Raises NotFound for an experiment or run that is not there."""

    def __init__(self, stores: StoreProvider, snapshots: SnapshotMemoryCache) -> None:
        self._stores = stores
        self._looks = snapshots
        self._earnings = RewardStatisticsReader(decisions_folder(stores.settings.home))
        self._prefixes = tuple(load_suite(name).experiment_prefix for name in built_in_suites())

    def experiments(self) -> list[ExperimentLine]:
        """Those of the built-in suites' prefixes and of tipbench's other suites, the newest first."""
        store = self._stores.store_if_any()
        found = store.experiments("") if store else []
        ours = [one for one in found if one.name.startswith(self._prefixes) or "tipbench.suite" in one.tags]
        return [self._line(store, experiment) for experiment in reversed(ours) if store]

    def leaderboard(self, experiment: str) -> Leaderboard:
        return self._board(self._looks.find(experiment))

    def leaderboard_json(self, experiment: str) -> bytes:
        """As compare's JSON."""
        kept = self._looks.find(experiment)
        return kept.made("json", lambda: json_text(as_data(self._board(kept))).encode())

    def report(self, experiment: str) -> Report:
        """The leaderboard with judges and examples."""
        kept = self._looks.find(experiment)
        made_at = utc_minute(self._stores.clock() * 1000)

        def make() -> Report:
            return make_report(
                self._stores.store(), kept.snapshot, rubric_of(kept.snapshot), self._board(kept), made_at
            )

        return kept.made("report", make)

    def rewards(self, experiment: str) -> Rewards:
        """What users did with its rows, by what the recommender of this home has logged until now."""
        return rewards_of(self.leaderboard(experiment), self._earnings.read())

    def runs(self, experiment: str, wanted: RunFilter, offset: int, limit: int) -> RunPage:
        if wanted.state is not None and wanted.state not in STATES:
            raise InvalidInput(f"there is no state '{wanted.state}'; take one of {', '.join(STATES)}")
        cells = _fitting(self._looks.find(experiment).snapshot.cells, wanted)
        return RunPage(cells[offset : offset + limit], len(cells), offset, limit)

    def levels(self, experiment: str) -> RunLevels:
        kept = self._looks.find(experiment)
        return kept.made("levels", lambda: _levels(kept.snapshot.cells))

    def run(self, experiment: str, run_id: str) -> RunDetail:
        kept = self._looks.find(experiment)
        cells = kept.made("by run", lambda: {cell.run_id: cell for cell in kept.snapshot.cells})
        if run_id not in cells:
            raise NotFound(f"there is no run '{run_id}' in experiment '{experiment}'")
        store = self._stores.store()
        cell = cells[run_id]
        found = store.runs(kept.snapshot.experiment, {KIND: CELL, "tipbench.cell_key": cell.key})
        run = next((one for one in found if one.run_id == run_id), None)
        if run is None:
            raise NotFound(f"run '{run_id}' is gone from experiment '{experiment}'")
        scores = kept.made("scores", lambda: _scores(store, kept))
        return _detail(store, cell, run, kept.snapshot.experiment, scores.get(run_id, ()))

    def _board(self, kept: SnapshotEntry) -> Leaderboard:
        return kept.made("board", lambda: leaderboard_of(kept.snapshot, rubric_of(kept.snapshot)))

    def _line(self, store: RunStore, experiment: Experiment) -> ExperimentLine:
        about = (experiment.name, experiment.created_ms, experiment.tags.get("tipbench.suite", ""))
        try:
            kept = self._looks.of(store, experiment)
        except TrackingUnreachable:
            raise
        except StoredDataDamaged as error:  # the others are worth a line all the same
            return ExperimentLine(*about, 0, 0, 0, 0, str(error))
        return kept.made("line", lambda: _counted(about, kept.snapshot.cells))


def state_of(cell: StoredCell) -> str:
    if cell.failure is not None:
        return "failed"
    if cell.is_empty:
        return "empty"
    return "pending" if cell.pending else "judged"


def _counted(about: tuple[str, int, str], cells: Sequence[StoredCell]) -> ExperimentLine:
    failed = sum(cell.failure is not None for cell in cells)
    pending = sum(cell.pending for cell in cells)
    return ExperimentLine(*about, len(cells), len(cells) - failed - pending, pending, failed)


def _fitting(cells: Sequence[StoredCell], wanted: RunFilter) -> Sequence[StoredCell]:
    """One condition after the other, so that most cells are looked at once."""
    if wanted.model is not None:
        cells = [cell for cell in cells if cell.model == wanted.model]
    if wanted.prompt is not None:
        cells = [cell for cell in cells if cell.prompt == wanted.prompt]
    if wanted.scenario is not None:
        cells = [cell for cell in cells if cell.scenario == wanted.scenario]
    return cells if wanted.state is None else [cell for cell in cells if state_of(cell) == wanted.state]


def _levels(cells: Sequence[StoredCell]) -> RunLevels:
    return RunLevels(
        tuple(dict.fromkeys(cell.model for cell in cells)),
        tuple(dict.fromkeys(cell.prompt for cell in cells)),
        tuple(dict.fromkeys(cell.scenario for cell in cells)),
    )


def _scores(store: RunStore, kept: SnapshotEntry) -> dict[str, list[CandidateScores]]:
    """Of every run, what judges gave its candidates by the rubric that the experiment is judged by."""
    batches = applied_batches(store, batch_runs(store, kept.snapshot.experiment), rubric_of(kept.snapshot).digest)
    counting = {batch.batch.judge for batch in batches if batch.counted}
    found: dict[str, list[CandidateScores]] = {}
    for judge, verdicts in effective_verdicts(batches).items():
        for (run_id, candidate), verdict in verdicts.items():
            given = (dict(verdict.scores), dict(verdict.flags), verdict.composite, verdict.note)
            found.setdefault(run_id, []).append(CandidateScores(candidate, judge, judge in counting, *given))
    return found


def _detail(
    store: RunStore, cell: StoredCell, run: StoredRun, experiment: Experiment, scores: Sequence[CandidateScores]
) -> RunDetail:
    written = None if cell.failure is not None else stored_candidates(store, run)
    return RunDetail(
        cell=cell,
        experiment_id=experiment.id,
        prompt=store.text(run, "prompt.txt") or "",
        raw=store.text(run, "raw.txt"),
        candidates=written.texts if written else (),
        scenario=written.scenario if written else "",
        params=dict(run.params),
        tags={key: value for key, value in run.tags.items() if not key.startswith(("artifact:", "tipbench.text:"))},
        scores=sorted(scores, key=lambda one: (one.candidate, one.judge)),
    )
