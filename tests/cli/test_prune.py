"""`tipbench prune`, as a user or cron types it."""

import time
from pathlib import Path

import pytest

from tests.integration.command import tipbench
from tipbench.core.paths import decisions_folder, server_folder, signals_folder
from tipbench.core.text import utc_minute
from tipbench.recommender.log.segmented_log import SegmentLog, entries
from tipbench.server.jobs.interface import Job
from tipbench.server.jobs.job_store import JobStore

DAY_MS = 86_400_000


@pytest.fixture
def now_ms(monkeypatch: pytest.MonkeyPatch) -> int:
    now = 1_800_000_000
    monkeypatch.setattr(time, "time", lambda: float(now))
    return now * 1000


def write(folder: Path, *times_ms: int) -> None:
    log = SegmentLog(folder, time.time)
    for at_ms in times_ms:
        log.append({"at_ms": at_ms})
    log.close()


def add_job(home: Path, name: str, job_id: str, ended_ms: int | None) -> Path:
    """Return the folder of a job with two files of its log."""
    folder = server_folder(home) / name / job_id
    folder.mkdir(parents=True)
    store = JobStore(server_folder(home) / f"{name}.db")
    store.add(Job(job_id, "finished" if ended_ms else "running", {}, created_ms=1, ended_ms=ended_ms), False, False, ())
    if ended_ms:
        store.update(job_id, "finished", ended_ms=ended_ms)
    store.close()
    for file in ("log.txt", "log.1.txt", "outcome.json"):
        (folder / file).touch()
    return folder


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_what_is_old_goes_and_all_else_stays(home: Path, now_ms: int) -> None:
    edge = now_ms - 90 * DAY_MS
    write(decisions_folder(home), edge - 2, edge - 1, edge, now_ms)
    write(signals_folder(home), edge - 1, edge + 1)
    old, new = add_job(home, "jobs", "old", edge - 1), add_job(home, "jobs", "new", edge)
    running, simulated = add_job(home, "jobs", "running", None), add_job(home, "simulations", "old", edge - 1)
    what = f"what is from before {utc_minute(edge)}: 2 lines of the decision log, 1 shadow signal, 4 job logs.\n"
    planned = tipbench("prune", "--keep-days", "90", "--dry-run")
    back = f"back to {utc_minute(edge)}.\n"
    assert planned == (0, f"It would remove {what}The decision log would go {back}", "")
    assert (len(list(entries(decisions_folder(home)))), len(names(old))) == (4, 3)
    assert tipbench("prune", "--keep-days", "90") == (0, f"Removed {what}The decision log goes {back}", "")
    assert [entry["at_ms"] for entry in entries(decisions_folder(home))] == [edge, now_ms]
    assert [entry["at_ms"] for entry in entries(signals_folder(home))] == [edge + 1]
    assert names(old) == names(simulated) == {"outcome.json"}
    assert names(new) == names(running) == {"log.txt", "log.1.txt", "outcome.json"}
    nothing = f"Nothing is from before {utc_minute(edge)}, so nothing was removed.\n"
    assert tipbench("prune", "--keep-days", "90").out == f"{nothing}The decision log goes {back}"


def test_nothing_is_there(home: Path, now_ms: int) -> None:
    assert tipbench("prune", "--keep-days", "1").out.startswith("Nothing is from before ")
    assert not server_folder(home).exists()


def test_nothing_is_removed_where_a_line_is_damaged(home: Path, now_ms: int) -> None:
    write(decisions_folder(home), 1)
    write(signals_folder(home), 1)
    (signals_folder(home) / "a.jsonl").write_text("{\n")
    done = tipbench("prune", "--keep-days", "1")
    assert (done.status, "a.jsonl, line 1, is damaged" in done.err) == (2, True)
    assert len(list(entries(decisions_folder(home)))) == 1


@pytest.mark.parametrize("days", ["0", "-1", "1.5", "all", "36501"])
def test_days_that_can_not_be_are_refused(days: str) -> None:
    assert tipbench("prune", "--keep-days", days).status == 2
