"""The supervisor: small and quick, its log within bounds, and the end written down whatever it was."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.integration.server.jobs.running import until
from tipbench.server.jobs.job_folder import Exit, JobFolder
from tipbench.server.jobs.supervisor import LOG_BYTES

WAITS = "import time; print('there', flush=True); time.sleep(60)"


def supervise(folder: Path, *command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "tipbench.server.jobs.supervisor", str(folder), *command], start_new_session=True
    )


def ran(folder: Path, code: str) -> Exit:
    assert supervise(folder, sys.executable, "-c", code).wait(60) == 0
    ended = JobFolder(folder).exit()
    assert ended
    return ended


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("print('done')", 0),
        ("raise SystemExit(2)", 2),
        ("import os; os.kill(os.getpid(), 9)", -9),
        ("import os; os.kill(os.getpid(), 15)", -15),
    ],
)
def test_the_end_is_written_down(tmp_path: Path, code: str, status: int) -> None:
    before = time.time()
    ended = ran(tmp_path, code)
    assert ended.status == status
    assert before * 1000 - 1 <= ended.ended_ms <= time.time() * 1000 + 1
    for path in tmp_path.iterdir():
        assert path.stat().st_mode & 0o077 == 0, path


def test_stdout_and_stderr_are_kept_in_their_order(tmp_path: Path) -> None:
    ran(tmp_path, "import os; os.write(1, b'one\\n'); os.write(2, b'two\\n'); os.write(1, b'three')")
    assert (tmp_path / "log.txt").read_text() == "one\ntwo\nthree"


@pytest.mark.parametrize(
    ("code", "ends_with"),
    [
        ("import os; [os.write(1, b'%09d\\n' % n) for n in range(500_000)]", b"000499998\n000499999\n"),
        ("print('x' * 10_000_000 + 'end', end='')", b"xxxend"),
    ],
    ids=["many lines", "one long line"],
)
def test_the_log_keeps_its_end_within_bounds(tmp_path: Path, code: str, ends_with: bytes) -> None:
    assert ran(tmp_path, code).status == 0
    kept = (tmp_path / "log.1.txt").read_bytes() + (tmp_path / "log.txt").read_bytes()
    assert LOG_BYTES * 0.9 < len(kept) <= 2 * LOG_BYTES
    assert kept.endswith(ends_with)


def test_a_full_disk_does_not_hold_the_run_up(tmp_path: Path) -> None:
    (tmp_path / "log.txt").symlink_to("/dev/full")
    assert ran(tmp_path, "print('x' * 1_000_000)").status == 0


def test_asked_to_end_as_a_group_it_outlives_the_run_and_writes_down_its_end(tmp_path: Path) -> None:
    tidy = f"import signal, sys; signal.signal(15, lambda *_: sys.exit(130)); {WAITS}"
    with supervise(tmp_path, sys.executable, "-c", tidy) as supervisor:
        until(lambda: (tmp_path / "log.txt").exists() and (tmp_path / "log.txt").read_text())
        os.killpg(supervisor.pid, signal.SIGTERM)
        assert supervisor.wait(20) == 0
    ended = JobFolder(tmp_path).exit()
    assert ended
    assert ended.status == 130


def test_a_program_that_the_run_left_behind_does_not_hold_it_up(tmp_path: Path) -> None:
    code = "import subprocess; print(subprocess.Popen(['/bin/sleep', '60']).pid, flush=True)"
    try:
        assert ran(tmp_path, code).status == 0
    finally:
        os.kill(int((tmp_path / "log.txt").read_text().split()[0]), signal.SIGKILL)


def children_cpu_s() -> float:
    """Of all children that have ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_it_is_small_and_quick(tmp_path: Path) -> None:
    """Held against a Python that does nothing, in time of the processor: the machine has other work, too."""
    times, bare = [], []
    for _ in range(5):
        before = children_cpu_s()
        assert supervise(tmp_path, "/bin/true").wait(20) == 0
        between = children_cpu_s()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        times.append(between - before)
        bare.append(children_cpu_s() - between)
    assert min(times) < 5 * min(bare)
    with supervise(tmp_path, "/bin/sleep", "60") as supervisor:
        until(
            lambda: JobFolder(tmp_path).pids().child in [one.pid for one in psutil.Process(supervisor.pid).children()]
        )
        assert psutil.Process(supervisor.pid).memory_info().rss < 20e6
        os.killpg(supervisor.pid, signal.SIGKILL)
