"""The runner of a program beside the server: when it watches jobs, and when it leaves them alone."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tipbench.bench.options import make_options
from tipbench.core.errors import Conflict, LockTaken
from tipbench.server.jobs.interface import Job, Runner
from tipbench.server.jobs.job_store import JobStore
from tipbench.server.jobs.on_demand import OnDemandRunner

OPTIONS = make_options({"experiment": "tip-bench-1"})


class Watcher:
    """Stands for the runner that holds the lock."""

    is_local = True
    is_closed = False

    def start(self, *_: object) -> Job:
        return Job("new", "queued", {}, 1)

    def close(self) -> None:
        self.is_closed = True


class Home:
    """A home with one job, and whoever opened its runner."""

    def __init__(self, folder: Path) -> None:
        (folder / "server").mkdir()
        self.store = JobStore(folder / "server" / "jobs.db")
        self.store.add(Job("one", "running", {"experiment": "e"}, round(time.time() * 1000)), False, False, ())
        self.opened: list[Watcher] = []
        self.is_served = False
        self.runner = OnDemandRunner(folder, self._open)

    def _open(self) -> Runner:
        if self.is_served:
            raise LockTaken("a server")
        self.opened.append(Watcher())
        return self.opened[-1]  # type: ignore[return-value]  # as much of a runner as is used here


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path)
    yield home
    home.runner.close()
    home.store.close()


def test_a_job_that_nobody_watches_is_taken_over_and_let_go_when_it_has_ended(jobs: Home) -> None:
    assert jobs.runner.job("one").state == "running"
    assert jobs.runner.jobs()
    assert len(jobs.opened) == 1
    jobs.store.update("one", "running", state="finished")
    assert jobs.runner.job("one").state == "finished"
    assert jobs.opened[0].is_closed


def test_beside_a_server_jobs_are_read_and_not_started(jobs: Home) -> None:
    jobs.is_served = True
    assert jobs.runner.job("one").state == "running"
    with pytest.raises(Conflict, match="a 'tipbench serve' of this home starts and ends its jobs"):
        jobs.runner.start(OPTIONS)
    with pytest.raises(Conflict):
        jobs.runner.cancel("one")
    jobs.is_served = False
    assert jobs.runner.start(OPTIONS).id == "new"


def test_closing_lets_go(jobs: Home) -> None:
    jobs.runner.start(OPTIONS)
    jobs.runner.close()
    assert jobs.opened[0].is_closed
