"""What is read, and how often."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.integration.command import tipbench
from tests.server.views.conftest import EXPERIMENT
from tipbench.bench.compare.snapshot import Snapshot, load_snapshot
from tipbench.bench.compare.texts import TextFilter
from tipbench.core.errors import InvalidInput, NotFound
from tipbench.server.views import snapshots as looks_module
from tipbench.server.views.boards import Boards, RunFilter
from tipbench.server.views.snapshots import SnapshotMemoryCache
from tipbench.server.views.store_provider import StoreProvider


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The experiments that were read, in order."""
    found: list[str] = []
    taken = load_snapshot

    def counted(store: Any, experiment: Any, *more: Any, **named: Any) -> Snapshot:
        found.append(experiment.name)
        return taken(store, experiment, *more, **named)

    monkeypatch.setattr(looks_module, "load_snapshot", counted)
    return found


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_experiments_are_counted(boards: Boards) -> None:
    [line] = boards.experiments()
    assert (line.name, line.suite, line.cells, line.judged, line.pending, line.failed) == (
        EXPERIMENT,
        "tip",
        16,
        0,
        16,
        0,
    )


def test_the_texts_of_a_page_are_as_the_runs_have_them(boards: Boards) -> None:
    page = boards.texts(EXPERIMENT).page(TextFilter(model="scripted/b"))
    assert page.total == 8
    for entry in (one for scenario in page.scenarios for one in scenario.entries):
        assert entry.best
        run = boards.run(EXPERIMENT, entry.best.run_id)
        assert (entry.best.text, entry.best.about) == (run.candidates[0], run.scenario)
        assert (entry.best.scenario, entry.unscored) == (run.cell.scenario, 2)


def test_an_unchanged_store_is_read_once(boards: Boards, reads: list[str]) -> None:
    for _ in range(3):
        boards.experiments()
        boards.leaderboard_json(EXPERIMENT)
        boards.runs(EXPERIMENT, RunFilter(), 0, 10)
    assert reads == [EXPERIMENT]


def test_what_another_process_writes_is_seen(stores: StoreProvider, address: str, reads: list[str]) -> None:
    clock = Clock()
    boards = Boards(stores, SnapshotMemoryCache(stores, clock))
    assert boards.experiments()[0].cells == 16
    more = ("--models", "scripted/c", "--prompts", "v1", "--n-scenarios", "1", "--mlflow-url", address)
    assert tipbench("collect", "--experiment", EXPERIMENT, *more).status == 0
    clock.now += 1
    assert boards.experiments()[0].cells == 17
    assert reads == [EXPERIMENT, EXPERIMENT]


def test_while_somebody_writes_elsewhere_an_experiment_is_not_read_all_the_time(
    stores: StoreProvider, address: str, reads: list[str]
) -> None:
    clock = Clock()
    boards = Boards(stores, SnapshotMemoryCache(stores, clock))
    boards.leaderboard(EXPERIMENT)
    for number in range(3):
        other = ("--models", "scripted/c", "--prompts", "v1", "--n-scenarios", "1", "--mlflow-url", address)
        assert tipbench("collect", "--experiment", f"tip-bench-other-{number}", *other).status == 0
        boards.leaderboard(EXPERIMENT)
    assert reads == [EXPERIMENT]
    clock.now += 2
    boards.leaderboard(EXPERIMENT)
    assert reads == [EXPERIMENT, EXPERIMENT]


def test_a_page_of_runs(boards: Boards) -> None:
    page = boards.runs(EXPERIMENT, RunFilter(), 10, 4)
    assert (len(page.cells), page.total, page.offset, page.limit) == (4, 16, 10, 4)
    assert boards.runs(EXPERIMENT, RunFilter(model="scripted/a"), 0, 100).total == 8
    assert boards.runs(EXPERIMENT, RunFilter(state="pending"), 0, 100).total == 16
    assert boards.runs(EXPERIMENT, RunFilter(state="failed"), 0, 100).total == 0
    assert not boards.runs(EXPERIMENT, RunFilter(), 99, 4).cells
    with pytest.raises(InvalidInput, match="judged, pending, failed, empty"):
        boards.runs(EXPERIMENT, RunFilter(state="odd"), 0, 1)


def test_a_run_with_its_texts(boards: Boards) -> None:
    cell = boards.runs(EXPERIMENT, RunFilter(), 0, 1).cells[0]
    run = boards.run(EXPERIMENT, cell.run_id)
    assert len(run.candidates) == 2
    assert run.raw
    assert run.candidates[0] in run.raw
    assert run.prompt
    assert not run.scores
    assert not [key for key in run.tags if key.startswith("artifact:")]


def test_what_code_found_is_shown_on_the_text(boards: Boards, address: str) -> None:
    suite = Path(__file__).parents[2] / "integration" / "suites" / "support"
    words = ("--suite", str(suite), "--models", "scripted/a", "--prompts", "v1", "--experiment", "support-bench-1")
    assert tipbench("collect", *words, "--mlflow-url", address).status == 0
    page = boards.runs("support-bench-1", RunFilter(state="judged"), 0, 100)
    assert page.total == 8
    run = boards.run("support-bench-1", page.cells[0].run_id)
    [scores] = run.scores
    assert (scores.judge, scores.counted, set(scores.flags)) == (
        "code",
        True,
        {"right", "greets", "hollow", "overlong"},
    )
    text = boards.texts("support-bench-1").page(TextFilter()).scenarios[0].entries[0].best
    assert text
    assert set(text.scores) == set(scores.flags)


def test_what_is_not_there(boards: Boards) -> None:
    with pytest.raises(NotFound, match="no-such"):
        boards.leaderboard("no-such")
    with pytest.raises(NotFound, match="no run 'x'"):
        boards.run(EXPERIMENT, "x")


def test_before_the_first_run_there_is_nothing(tmp_path: Any, stores: StoreProvider, address: str) -> None:
    nowhere = StoreProvider(f"sqlite:///{tmp_path / 'none.db'}", stores.settings, stores.clock, stores.new_id)
    boards = Boards(nowhere, SnapshotMemoryCache(nowhere))
    assert boards.experiments() == []
    with pytest.raises(NotFound):
        boards.leaderboard(EXPERIMENT)
    (tmp_path / "m.db").rename(tmp_path / "none.db")
    assert len(boards.experiments()) == 1
    nowhere.close()


def test_few_looks_stay_in_memory(stores: StoreProvider, monkeypatch: pytest.MonkeyPatch, reads: list[str]) -> None:
    monkeypatch.setattr(looks_module, "MAX_CELLS", 16)
    boards = Boards(stores, SnapshotMemoryCache(stores))
    more = ("--models", "scripted/c", "--prompts", "v1", "--n-scenarios", "1", "--mlflow-url", stores.address)
    assert tipbench("collect", "--experiment", "tip-bench-other", *more).status == 0
    boards.leaderboard(EXPERIMENT)
    boards.leaderboard("tip-bench-other")  # together they are too many
    boards.leaderboard("tip-bench-other")
    boards.leaderboard(EXPERIMENT)
    assert reads == [EXPERIMENT, "tip-bench-other", EXPERIMENT]


def test_who_wants_something_quick_does_not_wait_for_something_slow(snapshots: SnapshotMemoryCache) -> None:
    kept = snapshots.find(EXPERIMENT)
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        assert go_on.wait(30)
        return "slow"

    with ThreadPoolExecutor(2) as threads:
        first, second = (threads.submit(kept.cached, "slow", slow) for _ in range(2))
        assert begun.wait(30)
        assert kept.cached("quick", lambda: "quick") == "quick"
        go_on.set()
        assert (first.result(30), second.result(30)) == ("slow", "slow")
    assert kept.cached("slow", lambda: "made anew") == "slow"
