"""The database of jobs: in order, bounded, and careful with files that are not its own."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tipbench.server.jobs.interface import Job, UnknownJob
from tipbench.server.jobs.job_store import MAX_ENDED_JOBS, JobStore

CONFIG = {"experiment": "e", "models": "ä\ud800"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JobStore]:
    made = JobStore(tmp_path / "jobs.db")
    yield made
    made.close()


def add(store: JobStore, *names: str, at_ms: int = 1000) -> None:
    for name in names:
        store.add(Job(name, "queued", CONFIG, at_ms), retry_failed=True, fresh=False, needs=("a", "b"))


def test_what_was_stored_is_there_when_it_is_opened_again(store: JobStore, tmp_path: Path) -> None:
    add(store, "j1")
    store.update("j1", "queued", state="running", pid=77, started_ms=2000, cancelling=True)
    store.close()
    assert (tmp_path / "jobs.db").stat().st_mode & 0o777 == 0o600
    with closing(JobStore(tmp_path / "jobs.db")) as again:
        found = again.get("j1")
    assert found.job == Job("j1", "running", CONFIG, 1000, started_ms=2000, cancelling=True)
    assert (found.retry_failed, found.fresh, found.needs, found.pid) == (True, False, ("a", "b"), 77)


def test_jobs_of_one_moment_keep_their_order_and_none_is_lost_between_pages(store: JobStore) -> None:
    add(store, "j1", "j2", "j3")
    first = store.newest(2, None)
    assert [one.job.id for one in first] == ["j3", "j2"]
    assert [one.job.id for one in store.newest(2, first[-1].job.created_ms)] == ["j1"]
    store.update("j2", "queued", state="running")
    assert [one.job.id for one in store.live()] == ["j2", "j1", "j3"], "running ones, then the queue"


def test_only_a_job_in_that_state_is_changed(store: JobStore) -> None:
    add(store, "j1")
    assert store.update("j1", "queued", state="cancelled")
    assert not store.update("j1", "queued", state="running")
    assert store.get("j1").job.state == "cancelled"


def test_an_unknown_job_is_told(store: JobStore) -> None:
    with pytest.raises(UnknownJob, match=r"there is no job '\.\./x'; .* last 200 that have ended are stored"):
        store.get("../x")


def test_the_newest_ended_ones_are_kept(store: JobStore) -> None:
    names = [f"j{number}" for number in range(MAX_ENDED_JOBS + 3)]
    add(store, *names)
    for name in names[1:]:
        store.update(name, "queued", state="finished")
    assert [one.job.id for one in store.outdated()] == ["j2", "j1"], "the oldest of all has not ended"
