"""Child processes: starting and ending them, with limits on their run time and output."""

import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

_POLL_S = 0.05
_GRACE_S = 5.0  # between SIGTERM and SIGKILL
_CHUNK = 65_536
_Stream = int | IO[bytes]


class ProcessResult(NamedTuple):
    """Exit status and output of a program that has ended."""

    status: int  # negative: killed by that signal
    output: bytes
    last_error_line: str  # the last non-empty line of its stderr


class ProcessTimedOut(Exception):
    """The program was still running at its time limit."""


class TooMuchOutput(Exception):
    """The program wrote more than it is allowed to."""


def module_command(module: str, *arguments: str) -> list[str]:
    """Return the command line that runs one of our modules, without importing from the working directory."""
    return [sys.executable, "-P", "-m", module, *arguments]


def start_process(
    command: Sequence[str],
    stdin: _Stream = subprocess.DEVNULL,
    stdout: _Stream = subprocess.DEVNULL,
    stderr: _Stream = subprocess.DEVNULL,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> "subprocess.Popen[bytes]":
    """Start a process in its own session: it does not get Ctrl-C, and its whole group can be ended."""
    return subprocess.Popen(
        command, stdin=stdin, stdout=stdout, stderr=stderr, env=environment, cwd=folder, start_new_session=True
    )


def run_bounded(
    arguments: Sequence[str],
    input_bytes: bytes,
    environment: Mapping[str, str],
    timeout_s: float,
    max_bytes: int,
    folder: Path | None = None,
) -> ProcessResult:
    """Run a program with these bytes on stdin, in this folder, then end everything left in its process group.

    Raises ProcessTimedOut, TooMuchOutput, or OSError if it can't be started.
    """
    with tempfile.TemporaryFile() as stdin:
        stdin.write(input_bytes)
        stdin.seek(0)
        process = start_process(arguments, stdin, subprocess.PIPE, subprocess.PIPE, dict(environment), folder)
    with process:
        try:
            return _read_output(process, time.monotonic() + timeout_s, max_bytes)
        finally:
            end_group(process)


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """Terminate the process's group, and kill it after a grace period, which a second Ctrl-C cuts short."""
    try:
        deadline = time.monotonic() + _GRACE_S
        is_alive = signal_group(process.pid, signal.SIGTERM)
        while is_alive and time.monotonic() < deadline:
            process.poll()  # or it would remain as a zombie
            time.sleep(0.01)
            is_alive = signal_group(process.pid, 0)
    finally:
        signal_group(process.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            process.wait()


def signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group; return whether any process received it."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def kill_descendants(pid: int, wait_s: float = 0.0) -> None:
    """Kill all descendants of the process, in whichever group, and wait up to `wait_s` for them to end."""
    import psutil  # slow to import

    with suppress(psutil.NoSuchProcess):
        descendants = psutil.Process(pid).children(recursive=True)
        for process in descendants:
            with suppress(psutil.Error):  # it has just ended
                process.kill()
        psutil.wait_procs(descendants, timeout=wait_s)


def when_parent_ends(action: Callable[[], None]) -> None:
    """Run the action in a thread once standard input closes, as it does when the parent ends, however it ended."""
    threading.Thread(target=_wait_for_end_of_input, args=(action,), daemon=True).start()


def _wait_for_end_of_input(action: Callable[[], None]) -> None:
    """Read from the descriptor: a thread blocked in a buffered file would make Python abort at exit."""
    while os.read(0, _CHUNK):
        pass
    action()


def _read_output(process: "subprocess.Popen[bytes]", deadline: float, max_bytes: int) -> ProcessResult:
    """Read until both pipes are closed, or the program has ended and its children write nothing more."""
    output, errors = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        for pipe, received in ((process.stdout, output), (process.stderr, errors)):
            assert pipe is not None
            selector.register(pipe, selectors.EVENT_READ, received)
        while selector.get_map():
            has_ended = process.poll() is not None
            ready = selector.select(max(0.0, min(_POLL_S, deadline - time.monotonic())))
            for key, _ in ready:
                chunk = os.read(key.fd, _CHUNK)
                key.data.extend(chunk)
                if not chunk:
                    selector.unregister(key.fileobj)
            del errors[:-_CHUNK]
            if len(output) > max_bytes:
                raise TooMuchOutput
            if has_ended and not ready:
                break
            if time.monotonic() > deadline:
                raise ProcessTimedOut
    try:
        status = process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise ProcessTimedOut from None
    return ProcessResult(status, bytes(output), _last_line(errors))


def _last_line(errors: bytearray) -> str:
    lines = [line for line in errors.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1] if lines else ""
