"""The judge that is a program: nothing of it is left behind, however it ends."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.bench.judge.judges.files import (
    a_file,
)
from tests.bench.judge.judges.test_command import judge
from tipbench.core import processes as program
from tipbench.core.errors import JudgeFailed
from tipbench.core.untrusted import json_text


def gone(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def await_gone(pid: int) -> None:
    until = time.monotonic() + 10
    while not gone(pid):
        assert time.monotonic() < until, "still there"
        time.sleep(0.02)


def test_out_of_time_ends_the_program_and_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = f"""
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
with open({str(pids)!r}, "w") as out:
    print(os.getpid(), child.pid, file=out)
time.sleep(60)
"""
    with pytest.raises(JudgeFailed, match=r"did not answer within 2 s; TIPBENCH_JUDGE_TIMEOUT"):
        judge(code, timeout_s=2).score(a_file())
    for pid in pids.read_text().split():
        await_gone(int(pid))


def test_one_that_does_not_listen_to_sigterm_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(program, "_GRACE_S", 0.3)
    pid = tmp_path / "pid"
    code = f"""
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open({str(pid)!r}, "w") as out:
    out.write(str(os.getpid()))
os.close(1), os.close(2)
time.sleep(60)
"""
    with pytest.raises(JudgeFailed, match="did not answer"):
        judge(code, timeout_s=1).score(a_file())
    assert gone(int(pid.read_text()))


def test_a_child_that_outlives_its_program_is_ended_and_not_waited_for() -> None:
    code = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print('{"items": [], "child": %d}' % child.pid)
"""
    started = time.monotonic()
    await_gone(judge(code).score(a_file())["child"])
    assert time.monotonic() - started < 30


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    pid, given = tmp_path / "pid", tmp_path / "file.json"
    given.write_text(json_text(a_file()))
    inner = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    outer = f"""
import json
from tipbench.bench.judge.judges.command import CommandJudge
from tipbench.bench.judge.judges.interface import JudgeName
command = {f"{shlex.quote(sys.executable)} -c {shlex.quote(inner)}"!r}
CommandJudge(command, JudgeName("p")).score(json.load(open({str(given)!r})))
"""
    with subprocess.Popen([sys.executable, "-c", outer], stderr=subprocess.PIPE) as ours:
        until = time.monotonic() + 30
        while not (pid.exists() and pid.read_text()):
            assert time.monotonic() < until
            time.sleep(0.02)
        os.kill(ours.pid, signal.SIGINT)
        _, errors = ours.communicate(timeout=30)
    assert b"KeyboardInterrupt" in errors
    assert gone(int(pid.read_text()))
