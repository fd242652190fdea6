"""Experiments, leaderboards and runs for API and pages, cached in memory until the store changes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import NamedTuple

from tipbench.bench.compare.html.page import Report
from tipbench.bench.compare.leaderboard import Leaderboard, leaderboard_of
from tipbench.bench.compare.messages import as_data
from tipbench.bench.compare.snapshot import rubric_of
from tipbench.bench.compare.texts import Texts
from tipbench.bench.judge.by_code import code_verdicts
from tipbench.bench.judge.calibration import calibrations_in_short
from tipbench.bench.judge.settle import effective_verdicts
from tipbench.bench.records import BY_CODE, StoredCell
from tipbench.bench.report import Evidence, load_evidence
from tipbench.bench.suites.load import built_in_prefixes
from tipbench.bench.tracking.batches import OF_DECISION, applied_batches, batch_runs
from tipbench.bench.tracking.descriptions import DESCRIPTION
from tipbench.bench.tracking.interface import Experiment, StoredRun
from tipbench.bench.tracking.runs import CELL, KIND, CellCounts, stored_candidates
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
MAX_RUNS_PER_PAGE = 500

_NOT_SHOWN = ("artifact:", "tipbench.text:", DESCRIPTION)  # tags that repeat what a run's page shows


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
    decision: bool = False  # it holds a decision in rounds


@dataclass(frozen=True)
class RunFilter:
    """Which runs to list; None matches everything."""

    model: str | None = None
    prompt: str | None = None
    scenario: str | None = None
    state: str | None = None  # judged, pending, failed or empty


@dataclass(frozen=True)
class RunLevels:
    """The values that an experiment's runs can be filtered by."""

    models: Sequence[str]
    prompts: Sequence[str]
    scenarios: Sequence[str]


@dataclass(frozen=True)
class RunPage:
    """A page of an experiment's runs, oldest first."""

    cells: Sequence[StoredCell]
    total: int  # runs that match the filter
    offset: int
    limit: int
    levels: RunLevels


@dataclass(frozen=True)
class RunDetail:
    """One run with its texts. The model's output is untrusted."""

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


class Encoded(NamedTuple):
    """A response's body, and a digest of it."""

    content: bytes
    digest: str


class Boards:
    """Read access for API and pages. Raises NotFound for an experiment or run that does not exist."""

    def __init__(self, stores: StoreProvider, snapshots: SnapshotMemoryCache) -> None:
        self._stores = stores
        self._snapshots = snapshots
        self._reward_statistics = RewardStatisticsReader(decisions_folder(stores.settings.home))
        self._prefixes = built_in_prefixes()

    def experiments(self) -> list[ExperimentLine]:
        """Return experiments with a built-in suite's prefix or of another tipbench suite, newest first."""
        return [
            self._line(store, experiment, version)
            for store, experiment, version in reversed(self._snapshots.all())
            if experiment.name.startswith(self._prefixes) or "tipbench.suite" in experiment.tags
        ]

    def leaderboard(self, experiment: str) -> Leaderboard:
        return self._board(self._snapshots.find(experiment))

    def leaderboard_json(self, experiment: str) -> Encoded:
        """Return the leaderboard as `tipbench compare --format json` writes it."""
        entry = self._snapshots.find(experiment)

        def encode() -> Encoded:
            content = json_text(as_data(self._board(entry))).encode()
            return Encoded(content, sha256(content).hexdigest()[:32])

        return entry.cached("json", encode)

    def report(self, experiment: str) -> Report:
        """Return the leaderboard with judges and texts, as a file holds it."""
        entry = self._snapshots.find(experiment)
        evidence, made_at = self._evidence(entry), utc_minute(self._stores.clock() * 1000)
        return self._with_calibrations(
            entry.cached("report", lambda: evidence.report(evidence.texts.in_file(), made_at))
        )

    def overview(self, experiment: str, render: Callable[[Report], str]) -> tuple[Report, str]:
        """Return the leaderboard with judges and the first page of texts, and what `render` makes of it.

        That is done once for all who ask, until the experiment or the judges' calibrations change.
        """
        entry = self._snapshots.find(experiment)
        evidence, made_at = self._evidence(entry), utc_minute(self._stores.clock() * 1000)
        report = self._with_calibrations(
            entry.cached("overview", lambda: evidence.report(evidence.texts.overview(), made_at))
        )
        return report, entry.cached("rendered overview", lambda: render(report), dict(report.calibrations))

    def _with_calibrations(self, report: Report) -> Report:
        """Add the calibrations of this moment, which may be newer than what is cached."""
        home = self._stores.settings.home
        return replace(report, calibrations=calibrations_in_short(home, report.board.rubric_digest))

    def texts(self, experiment: str) -> Texts:
        return self._evidence(self._snapshots.find(experiment)).texts

    def rewards(self, experiment: str) -> Rewards:
        """Return what users did with its rows, from the decision log of this home's recommender."""
        return rewards_of(self.leaderboard(experiment), self._reward_statistics.read())

    def runs(self, experiment: str, wanted: RunFilter, offset: int, limit: int) -> RunPage:
        if wanted.state is not None and wanted.state not in STATES:
            raise InvalidInput(f"unknown state '{wanted.state}'; use one of {', '.join(STATES)}")
        entry = self._snapshots.find(experiment)
        cells = _matching(entry.snapshot.cells, wanted)
        levels = entry.cached("levels", lambda: _levels(entry.snapshot.cells))
        return RunPage(cells[offset : offset + limit], len(cells), offset, limit, levels)

    def run(self, experiment: str, run_id: str) -> RunDetail:
        entry = self._snapshots.find(experiment)
        cells = entry.cached("by run", lambda: {cell.run_id: cell for cell in entry.snapshot.cells})
        if run_id not in cells:
            raise NotFound(f"there is no run '{run_id}' in experiment '{experiment}'")
        store = self._stores.store()
        cell = cells[run_id]
        found = store.runs(entry.snapshot.experiment, {KIND: CELL, "tipbench.cell_key": cell.key})
        run = next((one for one in found if one.run_id == run_id), None)
        if run is None:
            raise NotFound(f"run '{run_id}' is gone from experiment '{experiment}'")
        scores = entry.cached("scores", lambda: _scores(store, entry))
        return _detail(store, cell, run, entry.snapshot.experiment, scores.get(run_id, ()))

    def _board(self, entry: SnapshotEntry) -> Leaderboard:
        return entry.cached("board", lambda: leaderboard_of(entry.snapshot, rubric_of(entry.snapshot)))

    def _evidence(self, entry: SnapshotEntry) -> Evidence:
        def load() -> Evidence:
            return load_evidence(self._stores.store(), entry.snapshot, rubric_of(entry.snapshot), self._board(entry))

        return entry.cached("evidence", load)

    def _line(self, store: RunStore, experiment: Experiment, version: str | None) -> ExperimentLine:
        about = (experiment.name, experiment.created_ms, experiment.tags.get("tipbench.suite", ""))
        try:
            entry = self._snapshots.get(store, experiment, version)
        except TrackingUnreachable:
            raise
        except StoredDataDamaged as error:  # list the other experiments anyway
            return ExperimentLine(*about, 0, 0, 0, 0, str(error))
        decision = OF_DECISION in experiment.tags
        return entry.cached("line", lambda: replace(_counted(about, entry.snapshot.cells), decision=decision))


def state_of(cell: StoredCell) -> str:
    if cell.failure is not None:
        return "failed"
    if cell.is_empty:
        return "empty"
    return "pending" if cell.pending else "judged"


def _counted(about: tuple[str, int, str], cells: Sequence[StoredCell]) -> ExperimentLine:
    found = CellCounts.of(cells)
    return ExperimentLine(*about, found.cells, found.judged, found.pending, found.failed)


def _matching(cells: Sequence[StoredCell], wanted: RunFilter) -> Sequence[StoredCell]:
    """Return the cells that match, applying one condition after another so that most cells are tested only once."""
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


def _scores(store: RunStore, entry: SnapshotEntry) -> dict[str, list[CandidateScores]]:
    """Return, by run id, the scores that judges gave its candidates under the experiment's current rubric."""
    rubric = rubric_of(entry.snapshot)
    batches = applied_batches(store, batch_runs(store, entry.snapshot.experiment), rubric.digest)
    counting = {batch.batch.judge for batch in batches if batch.counted}
    found: dict[str, list[CandidateScores]] = {}
    for judge, verdicts in effective_verdicts(batches).items():
        for (run_id, candidate), verdict in verdicts.items():
            given = (dict(verdict.scores), dict(verdict.flags), verdict.composite, verdict.note)
            found.setdefault(run_id, []).append(CandidateScores(candidate, judge, judge in counting, *given))
    for (run_id, candidate), verdict in code_verdicts(entry.snapshot.cells, rubric).items():
        given = ({}, dict(verdict.flags), verdict.composite, "")
        found.setdefault(run_id, []).append(CandidateScores(candidate, BY_CODE, True, *given))
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
        tags={key: value for key, value in run.tags.items() if not key.startswith(_NOT_SHOWN)},
        scores=sorted(scores, key=lambda one: (one.candidate, one.judge)),
    )
