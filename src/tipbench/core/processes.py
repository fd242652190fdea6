"""Child processes: how they are started, how long they may take, how much they may say, and how they are ended."""

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
from typing import IO, NamedTuple

_POLL_S = 0.05
_GRACE_S = 5.0  # between asking a program to end and ending it
_CHUNK = 65_536
_Stream = int | IO[bytes]


class Ended(NamedTuple):
    """What a program left."""

    status: int  # below 0: the signal that ended it
    output: bytes
    last_words: str  # the last line of its stderr


class OutOfTime(Exception):
    """The program was still at it at the end of its time."""


class TooMuch(Exception):
    """The program wrote more than it may."""


def module_command(module: str, *arguments: str) -> list[str]:
    """The command line that runs a module of ours; what lies in the working directory is not imported."""
    return [sys.executable, "-P", "-m", module, *arguments]


def start_process(
    command: Sequence[str],
    stdin: _Stream = subprocess.DEVNULL,
    stdout: _Stream = subprocess.DEVNULL,
    stderr: _Stream = subprocess.DEVNULL,
    environment: Mapping[str, str] | None = None,
) -> "subprocess.Popen[bytes]":
    """Start a process as the leader of a session of its own: Ctrl-C is not for it, and its group can be ended."""
    return subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=stderr, env=environment, start_new_session=True)


def run_bounded(
    arguments: Sequence[str], given: bytes, environment: Mapping[str, str], timeout_s: float, most_bytes: int
) -> Ended:
    """Run a program on these bytes; nothing that it started stays behind.

    Raises OutOfTime, TooMuch, or OSError where it can't start.
    """
    with tempfile.TemporaryFile() as stdin:
        stdin.write(given)
        stdin.seek(0)
        process = start_process(arguments, stdin, subprocess.PIPE, subprocess.PIPE, dict(environment))
    with process:
        try:
            return _listen(process, time.monotonic() + timeout_s, most_bytes)
        finally:
            end_group(process)


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """Ask the process's group to end, and kill it after a while; a second Ctrl-C shortens the while."""
    try:
        until = time.monotonic() + _GRACE_S
        is_there = signal_group(process.pid, signal.SIGTERM)
        while is_there and time.monotonic() < until:
            process.poll()  # or it would stay there as a zombie
            time.sleep(0.01)
            is_there = signal_group(process.pid, 0)
    finally:
        signal_group(process.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            process.wait()


def signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group; returns whether anybody was there to get it."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def kill_descendants(pid: int, wait_s: float = 0.0) -> None:
    """Kill all that the process started, in whichever group, and wait so long for them to be gone."""
    import psutil  # takes a while to import

    with suppress(psutil.NoSuchProcess):
        started = psutil.Process(pid).children(recursive=True)
        for process in started:
            with suppress(psutil.Error):  # it has just ended by itself
                process.kill()
        psutil.wait_procs(started, timeout=wait_s)


def when_parent_ends(action: Callable[[], None]) -> None:
    """Run the action in a thread once standard input closes, which it does however the parent that holds it ended."""
    threading.Thread(target=_wait_for_end_of_input, args=(action,), daemon=True).start()


def _wait_for_end_of_input(action: Callable[[], None]) -> None:
    """By the descriptor: a thread that waits in a buffered file makes Python abort where it should end."""
    while os.read(0, _CHUNK):
        pass
    action()


def _listen(process: "subprocess.Popen[bytes]", deadline: float, most_bytes: int) -> Ended:
    """Read until both pipes are closed, or the program has ended and its children keep silent."""
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
            if len(output) > most_bytes:
                raise TooMuch
            if has_ended and not ready:
                break
            if time.monotonic() > deadline:
                raise OutOfTime
    try:
        status = process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise OutOfTime from None
    return Ended(status, bytes(output), _last_line(errors))


def _last_line(errors: bytearray) -> str:
    lines = [line for line in errors.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1] if lines else ""
