"""Runs `tipbench` as a user does: its exit status and what it printed."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tipbench.cli.main import run


class Finished(NamedTuple):
    status: int
    out: str
    err: str


def tipbench(*arguments: str, cwd: Path | None = None) -> Finished:
    """In this process: quick, because MLflow is imported once for all tests. An exception fails the test."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.chdir(cwd or Path.cwd()):
        status = run(list(arguments))
    return Finished(status, out.getvalue(), err.getvalue())


def tipbench_process(*arguments: str, **environment: str) -> Finished:
    """In a process of its own, as from a shell."""
    done = subprocess.run(
        [sys.executable, "-m", "tipbench", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Finished(done.returncode, done.stdout, done.stderr)
