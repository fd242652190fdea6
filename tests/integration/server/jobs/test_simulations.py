"""Simulations as processes: one at a time, found again by a server that comes later, and ended when somebody asks."""

import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.integration.server.jobs.running import until
from tipbench.core.errors import Conflict, InvalidInput, LockTaken, NotFound
from tipbench.core.settings import Settings
from tipbench.server.jobs.interface import Job, UnknownJob
from tipbench.server.jobs.job_folder import JobFolder
from tipbench.server.jobs.job_watch import Processes, kill_group
from tipbench.server.jobs.simulation_asked import SimulationAsked
from tipbench.server.jobs.simulations import MAX_WAITING, SimulationRunner

pytestmark = pytest.mark.timeout(120)
Open = Callable[..., SimulationRunner]


@pytest.fixture
def opened(home: Path) -> Iterator[Open]:
    made: list[SimulationRunner] = []

    def one(grace_s: float = 30.0) -> SimulationRunner:
        made.append(SimulationRunner(home, Settings(), time.time, lambda: uuid.uuid4().hex[:16], grace_s))
        return made[-1]

    yield one
    for runner in made:
        runner.close()
    for path in (home / "server" / "simulations").glob("*"):
        while group := Processes().find_group(JobFolder(path), None):
            kill_group(group)


def small(**given: Any) -> SimulationAsked:
    return SimulationAsked.model_validate({"kind": "run", "policies": ["egreedy"], "seeds": 1, "steps": 5, **given})


def endless() -> SimulationAsked:
    return small(seeds=900, steps=10_000)


def folder_of(home: Path, job: Job) -> JobFolder:
    return JobFolder(home / "server" / "simulations" / job.id)


def ended(runner: SimulationRunner, job: Job) -> Job:
    until(lambda: runner.job(job.id).ended, seconds=60)
    return runner.job(job.id)


def test_from_the_request_to_the_outcome_one_after_the_other(opened: Open, home: Path) -> None:
    runner = opened()
    first = runner.start(small())
    second = runner.start(small(kind="gate", policies=None, candidate="linucb", incumbent="egreedy", seeds=10))
    until(lambda: runner.job(second.id).message or runner.job(second.id).state != "queued")
    with pytest.raises(NotFound, match="so it has no result"):
        runner.outcome(second.id)
    done, judged = ended(runner, first), ended(runner, second)
    assert (done.state, done.exit_status) == ("finished", 0)
    assert done.message.startswith("reward a decision over all personas: egreedy ")
    assert b'"overall"' in runner.outcome(first.id)
    assert "World 'tips', version 3" in runner.log(first.id)
    assert done.ended_ms
    assert judged.started_ms
    assert judged.started_ms >= done.ended_ms
    assert (judged.state, judged.exit_status) == ("finished", 1), "it was run, and not passed: it had no time to learn"
    progress = runner.progress(second.id)
    assert (progress.phase, progress.done, progress.message) == ("done", progress.cells, judged.message)
    assert (home / "recommender" / "gates" / f"{progress.kept_as}.json").is_file()
    assert b'"gate"' in runner.outcome(second.id)
    (home / "server" / "simulations" / second.id / "outcome.json").unlink()
    with pytest.raises(NotFound, match="was removed from its folder; start it again"):
        runner.outcome(second.id)
    assert [job.id for job in runner.jobs()] == [second.id, first.id]
    assert (home / "server" / "simulations").stat().st_mode & 0o777 == 0o700


def test_one_that_is_cancelled_ends_and_leaves_nothing(opened: Open, home: Path) -> None:
    runner = opened()
    job = runner.start(endless())
    waits = runner.start(small())
    until(lambda: runner.progress(job.id).cells)
    until(lambda: runner.job(waits.id).message)
    assert runner.job(waits.id).message == f"waits for simulation {job.id} (egreedy), because they run one at a time"
    assert runner.progress(waits.id).phase == "waiting"
    assert runner.cancel(waits.id).message == "cancelled before it began"
    child = folder_of(home, job).pids().child
    assert child
    until(lambda: psutil.Process(child).children())
    processes = psutil.Process(child).children(recursive=True)
    assert runner.cancel(job.id).cancelling
    over = ended(runner, job)
    assert (over.state, over.exit_status) == ("cancelled", 130)
    assert over.message.endswith(
        "it ended when it was asked to; nothing of it is stored: start it again, and it will give the same result"
    )
    psutil.wait_procs(processes, timeout=10)
    assert not [one for one in processes if one.is_running()]
    assert runner.cancel(job.id) == over


def test_one_that_does_not_end_when_asked_is_killed(opened: Open, home: Path) -> None:
    runner = opened(grace_s=0.3)
    job = runner.start(endless())
    until(lambda: runner.progress(job.id).cells)
    child = folder_of(home, job).pids().child
    assert child
    os.kill(child, signal.SIGSTOP)
    runner.cancel(job.id)
    over = ended(runner, job)
    assert (over.state, over.exit_status) == ("cancelled", -9)
    until(lambda: not psutil.pid_exists(child))


def test_a_runner_that_comes_later_finds_it_running_or_killed(opened: Open, home: Path) -> None:
    before = opened()
    job = before.start(endless())
    until(lambda: before.progress(job.id).cells)
    with pytest.raises(LockTaken, match=r"another server is running the simulations in .*; stop it, or set"):
        opened()
    before.close()
    after = opened()
    assert after.job(job.id).state == "running"
    supervisor = folder_of(home, job).pids().supervisor
    assert supervisor
    os.killpg(supervisor, signal.SIGKILL)
    over = ended(after, job)
    assert (over.state, over.exit_status) == ("failed", None)
    assert over.message.endswith("nothing of it is stored: start it again, and it will give the same result")


def test_only_so_many_wait(opened: Open) -> None:
    runner = opened()
    running = runner.start(endless())
    until(lambda: runner.job(running.id).state == "running")
    for _ in range(MAX_WAITING):
        runner.start(small())
    with pytest.raises(Conflict, match=f"{MAX_WAITING} simulations are queued already; cancel one, or wait"):
        runner.start(small())
    for job in runner.jobs():
        runner.cancel(job.id)
    ended(runner, running)


def test_what_can_not_be_carried_out_is_refused_and_leaves_nothing(opened: Open, home: Path) -> None:
    runner = opened()
    with pytest.raises(InvalidInput, match="there is no policy 'nobody' to simulate"):
        runner.start(small(policies=["nobody"]))
    assert runner.jobs() == []
    assert list((home / "server" / "simulations").iterdir()) == []
    with pytest.raises(UnknownJob, match="there is no simulation 'x'"):
        runner.log("x")
