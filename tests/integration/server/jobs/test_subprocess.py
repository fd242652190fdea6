"""Jobs as processes: their turns, their ends, and that a runner that comes later finds them in whatever state."""

import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from tests.integration.server.jobs.running import ENDLESS, Bench, has_ended, is_collecting, until
from tipbench.core.errors import InvalidInput, LockTaken
from tipbench.server.jobs.interface import Job, Runner, UnknownJob
from tipbench.server.jobs.job_folder import JobFolder
from tipbench.server.jobs.job_store import MAX_ENDED_JOBS, JobStore

pytestmark = pytest.mark.timeout(120)


def child_of(bench: Bench, job: Job) -> int:
    pid = bench.job_folder(job).pids().child
    assert pid
    return pid


def supervisor_of(bench: Bench, job: Job) -> int:
    pid = bench.job_folder(job).pids().supervisor
    assert pid
    return pid


def test_a_job_from_request_to_result(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIPBENCH_ADMIN_TOKEN", "opens-everything")
    monkeypatch.setenv("TIPBENCH_OPENAI_KEY", "sk-very-s3cret")
    runner: Runner = bench.open()
    taken = runner.start(bench.request(judge=None, latency_s=0.5))
    assert (taken.experiment, taken.config["n_tips"]) == ("tip-bench-x", 5)
    until(lambda: runner.progress(taken.id).cells)
    for pid in (supervisor_of(bench, taken), child_of(bench, taken)):
        environment = psutil.Process(pid).environ()
        assert "TIPBENCH_ADMIN_TOKEN" not in environment
        assert environment["TIPBENCH_OPENAI_KEY"] == "sk-very-s3cret"
        assert os.getsid(pid) == supervisor_of(bench, taken) != os.getsid(0)
    assert psutil.Process(supervisor_of(bench, taken)).num_fds() <= 5, "the run's output, and nothing of the server's"
    until(lambda: runner.job(taken.id).ended)
    job = runner.job(taken.id)
    folder = bench.job_folder(job).path
    assert (job.state, job.exit_status, job.cancelling) == ("finished", 0, False)
    assert job.message.startswith("2 cells answered; ")
    assert job.started_ms
    assert job.ended_ms
    assert job.created_ms <= job.started_ms < job.ended_ms
    progress = runner.progress(job.id)
    assert (progress.phase, progress.cells, progress.done, progress.message) == ("done", 2, 2, job.message)
    assert "[2/2]" in runner.log(job.id)
    assert "Next: " in runner.log(job.id)
    assert (folder / "judge.json").is_file()
    for path in (folder, folder.parent, folder.parent.parent):
        assert path.stat().st_mode & 0o777 == 0o700
    kept = repr(runner.jobs()) + "".join(path.read_text("utf-8") for path in folder.iterdir())
    kept += (folder.parent.parent / "jobs.db").read_bytes().decode("latin-1")
    assert "s3cret" not in kept
    assert "opens-everything" not in kept


def test_what_a_run_refuses_is_the_jobs_message(bench: Bench) -> None:
    runner = bench.open()
    job = runner.start(bench.request(models="scripted/gone.yaml"))
    until(lambda: has_ended(runner, job))
    job = runner.job(job.id)
    assert (job.state, job.exit_status) == ("failed", 2)
    assert job.message.startswith("script gone.yaml can't be used")


def test_jobs_of_one_experiment_take_turns_and_others_overtake(bench: Bench) -> None:
    runner = bench.open()
    first = runner.start(bench.request("one", ENDLESS))
    second = runner.start(bench.request("one"))
    third = runner.start(bench.request("one"))
    other = runner.start(bench.request("other"))
    until(lambda: has_ended(runner, other))
    assert runner.job(other.id).state == "finished"
    assert [runner.job(one.id).state for one in (first, second, third)] == ["running", "queued", "queued"]
    for waiting in (second, third):
        assert runner.job(waiting.id).message == (
            f"waits for job {first.id} (tip-bench-one), which writes to the same experiment"
        )
        assert runner.progress(waiting.id).phase == "waiting"
        assert runner.progress(waiting.id).message == runner.job(waiting.id).message
    cancelled = runner.cancel(second.id)
    assert (cancelled.state, cancelled.message) == ("cancelled", "cancelled before it began")
    assert runner.cancel(second.id) == cancelled
    runner.cancel(first.id)
    until(lambda: has_ended(runner, third))
    first, third = runner.job(first.id), runner.job(third.id)
    assert (first.state, third.state) == ("cancelled", "finished")
    assert third.started_ms
    assert first.ended_ms
    assert third.started_ms >= first.ended_ms
    assert [one.id for one in runner.jobs(limit=2)] == [other.id, third.id]
    assert [one.id for one in runner.jobs(before_ms=third.created_ms)] == [second.id, first.id]


def test_a_job_that_is_cancelled_ends_tidily(bench: Bench) -> None:
    """However long that takes: on a busy machine, what is on its way to MLflow can take half a minute."""
    runner = bench.open(grace_s=100)
    job = runner.start(bench.request(latency_s=ENDLESS))
    until(lambda: is_collecting(runner, job))
    assert runner.cancel(job.id).cancelling
    assert runner.cancel(job.id).cancelling or runner.job(job.id).ended
    until(lambda: has_ended(runner, job), seconds=90)
    job = runner.job(job.id)
    assert (job.state, job.exit_status, job.cancelling) == ("cancelled", 130, False)
    assert "Interrupted. What was stored so far remains" in runner.log(job.id)
    assert runner.progress(job.id).eta_s is None
    assert runner.cancel(job.id) == job, "what has ended stays as it is"


def test_one_that_does_not_end_when_asked_is_killed_with_all_that_it_started(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIPBENCH_JUDGE_COMMAND", "/bin/sleep 60")
    runner = bench.open()
    job = runner.start(bench.request(judge="command"))
    until(lambda: runner.progress(job.id).phase == "judge" and psutil.Process(child_of(bench, job)).children())
    child = child_of(bench, job)
    [program] = psutil.Process(child).children()
    until(lambda: os.getpgid(program.pid) != os.getpgid(child))  # a moment after its start
    os.kill(child, signal.SIGSTOP)  # deaf to everything but SIGKILL
    assert runner.cancel(job.id).cancelling
    runner.close()
    runner = bench.open(grace_s=0.3)
    until(lambda: has_ended(runner, job))
    job = runner.job(job.id)
    assert (job.state, job.exit_status) == ("cancelled", -9)
    assert "it did not end within 0.3 s and was killed" in job.message
    until(lambda: not psutil.pid_exists(child) and not program.is_running())


def test_a_run_that_was_killed_is_told_by_its_signal(bench: Bench) -> None:
    runner = bench.open()
    job = runner.start(bench.request(latency_s=ENDLESS))
    until(lambda: is_collecting(runner, job))
    os.kill(child_of(bench, job), signal.SIGKILL)
    until(lambda: has_ended(runner, job))
    job = runner.job(job.id)
    assert (job.state, job.exit_status) == ("failed", -9)
    assert "killed by signal 9 (was it out of memory?)" in job.message


def test_a_run_without_its_supervisor_is_ended_tidily(bench: Bench) -> None:
    runner = bench.open()
    job = runner.start(bench.request(latency_s=ENDLESS))
    until(lambda: is_collecting(runner, job))
    child = child_of(bench, job)
    os.kill(supervisor_of(bench, job), signal.SIGKILL)
    until(lambda: has_ended(runner, job))
    job = runner.job(job.id)
    assert (job.state, job.exit_status) == ("failed", None)
    assert "without a message" in job.message
    until(lambda: not psutil.pid_exists(child))
    assert (bench.job_folder(job).progress() or job).message == "interrupted; what was done is stored"


def test_a_runner_that_comes_later_finds_jobs_in_every_state(bench: Bench) -> None:
    before = bench.open()
    finished = before.start(bench.request("done"))
    cancelled = before.start(bench.request("done"))
    before.cancel(cancelled.id)
    running = before.start(bench.request("endless", ENDLESS))
    queued = before.start(bench.request("endless"))
    gone = before.start(bench.request("gone", ENDLESS))
    unseen = before.start(bench.request("unseen", 0.5))  # will end while nobody looks
    until(lambda: has_ended(before, finished))
    until(lambda: all(is_collecting(before, one) for one in (running, gone, unseen)))
    listed = before.jobs()
    before.close()
    os.killpg(supervisor_of(bench, gone), signal.SIGKILL)
    until(lambda: bench.job_folder(unseen).exit())
    ended_ms = (bench.job_folder(unseen).exit() or (0, 0))[1]

    after = bench.open()
    assert [one.id for one in after.jobs()] == [one.id for one in listed]
    assert after.job(finished.id) == next(one for one in listed if one.id == finished.id)
    assert after.job(cancelled.id).state == "cancelled"
    until(lambda: has_ended(after, gone) and has_ended(after, unseen))
    assert (after.job(gone.id).state, after.job(gone.id).exit_status) == ("failed", None)
    assert after.job(gone.id).message.startswith("its process ended without a message")
    assert (after.job(unseen.id).state, after.job(unseen.id).ended_ms) == ("finished", ended_ms)
    assert (after.job(running.id).state, after.job(queued.id).state) == ("running", "queued")
    after.cancel(running.id)
    until(lambda: has_ended(after, queued))
    assert (after.job(running.id).state, after.job(queued.id).state) == ("cancelled", "finished")


def test_a_job_whose_start_nobody_could_note_is_found_by_what_it_wrote(bench: Bench) -> None:
    before = bench.open()
    job = before.start(bench.request(latency_s=ENDLESS))
    until(lambda: is_collecting(before, job))
    before.close()
    store = JobStore(bench.home / "server" / "jobs.db")
    store.update(job.id, "running", pid=None)
    store.close()
    after = bench.open()
    after.cancel(job.id)
    until(lambda: has_ended(after, job))
    assert (after.job(job.id).state, after.job(job.id).exit_status) == ("cancelled", 130)


def test_a_clock_that_was_set_back_leaves_no_job_running(bench: Bench) -> None:
    before = bench.open()
    gone, stubborn = (before.start(bench.request(name, ENDLESS)) for name in ("gone", "stubborn"))
    until(lambda: all(is_collecting(before, one) for one in (gone, stubborn)))
    before.close()
    os.killpg(supervisor_of(bench, gone), signal.SIGKILL)
    in_an_hour = round(time.time() * 1000) + 3_600_000
    store = JobStore(bench.home / "server" / "jobs.db")
    store.update(gone.id, "running", started_ms=in_an_hour)
    store.update(stubborn.id, "running", cancelling=True, stopped_ms=in_an_hour)  # and it did not end
    store.close()
    after = bench.open()
    until(lambda: has_ended(after, gone) and has_ended(after, stubborn))
    assert (after.job(gone.id).state, after.job(stubborn.id).state) == ("failed", "cancelled")


def test_two_servers_on_one_home_are_one_too_many(bench: Bench) -> None:
    runner = bench.open()
    with pytest.raises(LockTaken, match=r"another server is running the jobs in .*; stop it, or set TIPBENCH_HOME"):
        bench.open()
    runner.close()
    bench.open()


def test_the_last_ended_jobs_are_kept_and_older_ones_removed(bench: Bench) -> None:
    folders = bench.home / "server" / "jobs"
    folders.mkdir(parents=True)
    store = JobStore(folders.parent / "jobs.db")
    names = [f"j{number}" for number in range(MAX_ENDED_JOBS + 2)]
    for number, name in enumerate(names):
        JobFolder(folders / name).create({})
        store.add(Job(name, "finished", {"experiment": "e"}, number), False, False, ())
    store.close()
    JobFolder(folders / "never-taken").create({})
    JobFolder(folders / "of-a-lost-database").create({})
    (folders / "of-a-lost-database" / "log.txt").touch()
    runner = bench.open()
    until(lambda: len(runner.jobs(limit=1000)) == MAX_ENDED_JOBS)
    assert {path.name for path in folders.iterdir()} == {"of-a-lost-database", *names[2:]}
    with pytest.raises(UnknownJob):
        runner.log(names[0])


def test_secrets_in_addresses_are_refused_before_anything_is_kept(bench: Bench) -> None:
    runner = bench.open()
    with pytest.raises(InvalidInput, match="mlflow_url: contains a user name or password"):
        runner.start(bench.request(mlflow_url="http://me:s3cret@localhost:5000"))
    assert runner.jobs() == []
    assert list((bench.home / "server" / "jobs").iterdir()) == []


def test_it_sleeps_while_there_is_nothing_to_do(bench: Bench, tmp_path: Path) -> None:
    bench.open()
    time.sleep(0.1)
    before = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - before < 0.05
