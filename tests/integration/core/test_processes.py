"""Child processes are bounded, and nothing of them stays behind."""

import os
import subprocess
import sys
import time

import psutil
import pytest

from tipbench.core.processes import (
    ProcessTimedOut,
    TooMuchOutput,
    end_group,
    kill_descendants,
    run_bounded,
    start_process,
)

_SLEEPS = [sys.executable, "-c", "import time; time.sleep(60)"]


def test_a_program_is_given_bytes_and_says_what_is_left() -> None:
    code = "import sys; sys.stdout.write(sys.stdin.read().upper()); sys.stderr.write('a\\nb\\n'); sys.exit(5)"
    assert run_bounded([sys.executable, "-c", code], b"abc", os.environ, 30, 100) == (5, b"ABC", "b")


def test_one_that_takes_too_long_or_says_too_much_is_ended() -> None:
    with pytest.raises(ProcessTimedOut):
        run_bounded(_SLEEPS, b"", os.environ, 0.2, 100)
    with pytest.raises(TooMuchOutput):
        run_bounded([sys.executable, "-c", "while True: print('x' * 1000)"], b"", os.environ, 30, 5_000)


def gone(process: psutil.Process) -> bool:
    """Whether it ends within seconds: a signal that was sent takes a moment on a busy machine."""
    until = time.monotonic() + 10
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE and time.monotonic() < until:
        time.sleep(0.01)
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_a_group_ends_with_what_ignores_the_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tipbench.core.processes._GRACE_S", 0.3)
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('there', flush=True)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {f'{deaf}; time.sleep(60)'!r}])"
    process = start_process([sys.executable, "-c", code], stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        (child,) = psutil.Process(process.pid).children()
        end_group(process)
        assert gone(child)


def test_descendants_end_in_whichever_group_they_are() -> None:
    code = "import subprocess, sys, time\n"
    code += f"subprocess.Popen({_SLEEPS!r}, start_new_session=True); print('there', flush=True); time.sleep(60)"
    with start_process([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        (child,) = psutil.Process(process.pid).children()
        kill_descendants(process.pid)
        assert gone(child)
        assert process.poll() is None
        process.kill()
