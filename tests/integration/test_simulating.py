"""`tipbench sim` with its processes: the same results every way, and nothing left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.integration.command import tipbench
from tipbench.server.jobs.progress import read_progress

FEW = ("--personas", "switcher,chaotic", "--seeds", "2", "--steps", "12")
ENDLESS = ("--seeds", "5000", "--steps", "50", "--policies", "egreedy", "--personas", "switcher", "--workers", "2")
PATIENCE_S = 60.0


def test_the_same_bytes_every_time_and_on_any_number_of_cores(tmp_path: Path) -> None:
    first = tipbench("sim", "run", *FEW, "--format", "json", "--workers", "1", "--out", str(tmp_path / "first.json"))
    again = tipbench("sim", "run", *FEW, "--format", "json", "--workers", "3", "--out", str(tmp_path / "again.json"))
    assert (first.status, again.status) == (0, 0), first.err + again.err
    assert first.out == again.out
    assert (tmp_path / "first.json").read_text(encoding="utf-8") == first.out
    assert (tmp_path / "first.json").read_bytes() == (tmp_path / "again.json").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.json", "first.json"]
    other = tipbench("sim", "run", *FEW, "--format", "json", "--first-seed", "1")
    assert other.out != first.out


def test_over_http_everything_is_as_in_process() -> None:
    """Among it two arms of one policy, whose users must not be one, and an arm that is not served."""
    policies = ("--policies", "egreedy,egreedy/v2,egreedy/v2-flat,linucb,category-mean", "--format", "json")
    here = tipbench("sim", "run", *FEW, *policies)
    there = tipbench("sim", "run", *FEW, *policies, "--http")
    assert (here.status, there.status) == (0, 0), there.err
    assert here.out == there.out
    assert "Simulated in process, because they can't be served over HTTP: category-mean." in there.err


def _processes(of: psutil.Process) -> list[psutil.Process]:
    return [of, *of.children(recursive=True)]


def _gone(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


@contextmanager
def _halfway(tmp_path: Path, *words: str) -> Iterator[tuple["subprocess.Popen[bytes]", list[psutil.Process]]]:
    """A simulation that has begun, and all its processes: the command, the child, its workers and its service."""
    (tmp_path / "tmp").mkdir()
    progress, said = tmp_path / "progress.json", tmp_path / "said"
    command = [sys.executable, "-m", "tipbench", "sim", "run", *ENDLESS, *words, "--progress", str(progress)]
    with said.open("wb") as out:
        running = subprocess.Popen(
            command, env={**os.environ, "TMPDIR": str(tmp_path / "tmp")}, stdout=out, stderr=subprocess.STDOUT
        )
    try:
        _until(lambda: (found := read_progress(progress)) is not None and found.done > 0)
        assert len(list((tmp_path / "tmp").glob("tipbench-sim-*"))) == 1
        yield running, _processes(psutil.Process(running.pid))
    finally:
        running.kill()
        running.wait()


def _nothing_left(tmp_path: Path, processes: list[psutil.Process]) -> None:
    _until(lambda: all(_gone(process) for process in processes))
    _until(lambda: list((tmp_path / "tmp").iterdir()) == [])


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_ends_at_once_and_leaves_nothing(tmp_path: Path, how: signal.Signals) -> None:
    with _halfway(tmp_path) as (running, processes):
        assert len(processes) >= 4
        running.send_signal(how)
        assert running.wait(PATIENCE_S) == 130
        _nothing_left(tmp_path, processes)
    assert "Interrupted. Nothing was stored" in (tmp_path / "said").read_text(encoding="utf-8")
    found = read_progress(tmp_path / "progress.json")
    assert found
    assert (found.phase, found.message) == ("simulate", "interrupted; nothing was stored")


def test_killed_it_leaves_nothing_and_neither_does_its_service(tmp_path: Path) -> None:
    with _halfway(tmp_path, "--http") as (running, processes):
        assert len(processes) >= 5
        running.kill()
        _nothing_left(tmp_path, processes)


def test_a_killed_child_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    with _halfway(tmp_path) as (running, processes):
        processes[1].kill()
        assert running.wait(PATIENCE_S) == 2
        _nothing_left(tmp_path, processes)
    assert "the simulation ended without a result: signal 9 ended it" in (tmp_path / "said").read_text(encoding="utf-8")


def test_workers_and_service_do_not_outlive_command_and_child(tmp_path: Path) -> None:
    with _halfway(tmp_path, "--http") as (running, processes):
        for process in (running, processes[1]):
            process.kill()
        _until(lambda: all(_gone(process) for process in processes))
