"""A command that ends with its starter."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from tipbench.core.die_with_parent import die_with_parent_command

_STARTER = """
import subprocess, time
from tipbench.core.die_with_parent import die_with_parent_command
started = subprocess.Popen(die_with_parent_command("recommend", "serve", "--port", "0"))
print(started.pid, flush=True)
time.sleep(600)
"""


def _gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the kernel knows no such thing")
@pytest.mark.parametrize("early", [True, False])
def test_a_killed_starter_takes_it_along(early: bool) -> None:
    with subprocess.Popen([sys.executable, "-c", _STARTER], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout
        started = int(starter.stdout.readline())
        if not early:
            assert any("serves at" in line for line in starter.stdout)
        os.kill(starter.pid, signal.SIGKILL)
    until = time.monotonic() + 60
    while not _gone(started):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_it_is_tipbench_and_gives_its_exit_status() -> None:
    told = subprocess.run(die_with_parent_command("--version"), capture_output=True, text=True, check=True)
    assert told.stdout.startswith("tipbench")
    assert subprocess.run(die_with_parent_command("no-such-command"), capture_output=True, check=False).returncode == 2


def test_whoever_was_left_alone_does_not_begin() -> None:
    python, option, module, _, *rest = die_with_parent_command("--version")
    told = subprocess.run([python, option, module, "1", *rest], capture_output=True, check=True)
    assert told.stdout == b""
