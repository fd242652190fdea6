"""The file of `tipbench run --progress`: soon up to date, and never in the way of the run."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bench.tracking.records_made import a_cell, an_answer
from tipbench.bench.collect.plan import Plan
from tipbench.bench.records import Failure
from tipbench.cli.progress_file import WRITE_INTERVAL_S, ProgressFile
from tipbench.core.errors import InvalidInput, SuiteError
from tipbench.server.jobs.progress import MAX_FAILURES, Progress, read_progress


def a_plan(to_do: int, stored: int = 0) -> Plan:
    cells: Any = range(to_do)
    return Plan((), cells, stored, 0, 1.0, measured=False)


def told(path: Path) -> Progress:
    found = read_progress(path)
    assert found
    return found


def until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def test_it_counts_and_tells_when_it_will_be_done(tmp_path: Path) -> None:
    now = [1000.0]
    path = tmp_path / "p.json"
    with ProgressFile(path, clock=lambda: now[0]) as file:
        assert told(path).phase == "starting"
        file.experiment = "tip-bench-x"
        file.planned(a_plan(30, stored=4))
        assert told(path) == Progress(
            "collect", "", "tip-bench-x", 30, 4, collect_started_ms=1_000_000, updated_ms=1_000_000
        )
        now[0] += 20
        file.done(an_answer())
        for _ in range(MAX_FAILURES + 1):
            file.done(Failure(a_cell(), "died\n\x1b[31m of " + "x" * 1000))
        assert until(lambda: told(path).done == 22)
        seen = told(path)
        assert (seen.failed, seen.empty, seen.current) == (21, 0, a_cell().label)
        assert seen.eta_s == pytest.approx(20 / 22 * 8, abs=0.1)
        assert len(seen.failures) == MAX_FAILURES
        assert seen.failures[0].cell == a_cell().label
        assert seen.failures[0].reason.startswith("died \\u001b[31m of x")
        assert len(seen.failures[0].reason) < 320
        file.begin("judge")
        assert (told(path).phase, told(path).eta_s) == ("judge", None)
        file.finish("22 cells answered", waiting_items=7)
    assert (told(path).phase, told(path).message, told(path).waiting_items) == ("done", "22 cells answered", 7)


def test_ten_thousand_quick_cells_cost_next_to_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The best of three, because other work on the machine is not ours to measure."""
    writes = []
    write = Progress.write

    def counted(self: Progress, path: Path) -> None:
        writes.append(time.monotonic())
        write(self, path)

    monkeypatch.setattr(Progress, "write", counted)
    outcome, times = an_answer(), []
    for _ in range(3):
        writes.clear()
        with ProgressFile(tmp_path / "p.json") as file:
            file.planned(a_plan(10_000))
            started = time.monotonic()
            for _ in range(10_000):
                file.done(outcome)
            times.append(time.monotonic() - started)
        assert told(tmp_path / "p.json").done == 10_000
        assert len(writes) <= 5 + times[-1] / WRITE_INTERVAL_S
    assert min(times) < 0.2


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (InvalidInput("there is no such thing; take another"), "there is no such thing; take another"),
        (SuiteError("the suite can't be used:", ["a.yaml: bad"]), "the suite can't be used: - a.yaml: bad"),
        (KeyboardInterrupt(), "interrupted; what was done is stored"),
        (OSError(28, "No space left on device", "/x/y"), "[Errno 28] No space left on device: '/x/y'"),
        (ZeroDivisionError("x"), "it ended with an unexpected error (ZeroDivisionError: x)"),
    ],
)
def test_what_ends_the_run_is_its_last_message(tmp_path: Path, error: BaseException, says: str) -> None:
    path = tmp_path / "p.json"

    def fail() -> None:
        with ProgressFile(path) as file:
            file.begin("collect")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert (told(path).phase, told(path).message) == ("collect", says)


def test_a_file_that_can_not_be_written_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"progress can't be written to .*No such file.*name another"):
        ProgressFile(tmp_path / "gone" / "p.json").__enter__()


def test_a_file_that_can_not_be_written_later_does_not_end_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "f"
    folder.mkdir()
    with ProgressFile(folder / "p.json") as file:
        (folder / "p.json").unlink()
        folder.rmdir()
        file.begin("collect")
        file.begin("judge")
    assert capsys.readouterr().err.count("any more; the run continues") == 1


def test_a_simulation_counts_its_lives(tmp_path: Path) -> None:
    now = [1000.0]
    path = tmp_path / "p.json"
    with ProgressFile(path, clock=lambda: now[0]) as file:
        file.simulated(0, 40)
        now[0] += 5
        file.simulated(10, 40)
        assert until(lambda: told(path).done == 10)
        assert (told(path).phase, told(path).cells, told(path).eta_s) == ("simulate", 40, 15.0)
