"""Runs a program in a process group of its own, with bounds on its time and its output; nothing of it stays behind."""

import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

_POLL_S = 0.05
_GRACE_S = 5.0  # between asking a program to end and ending it
_CHUNK = 65_536


class Ended(NamedTuple):
    """What a program left."""

    status: int  # below 0: the signal that ended it
    output: bytes
    last_words: str  # the last line of its stderr


class OutOfTime(Exception):
    """The program was still at it at the end of its time."""


class TooMuch(Exception):
    """The program wrote more than it may."""


def run_program(
    arguments: Sequence[str], given: bytes, environment: Mapping[str, str], timeout_s: float, most_bytes: int
) -> Ended:
    """Gives it the bytes on stdin and waits for it. Raises OutOfTime, TooMuch, or OSError where it can't start."""
    with tempfile.TemporaryFile() as stdin:
        stdin.write(given)
        stdin.seek(0)
        process = subprocess.Popen(
            arguments,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            start_new_session=True,
        )
    with process:
        try:
            return _listen(process, time.monotonic() + timeout_s, most_bytes)
        finally:
            _end_group(process)


def _listen(process: "subprocess.Popen[bytes]", deadline: float, most_bytes: int) -> Ended:
    """Reads until both pipes are closed, or the program has ended and its children keep silent."""
    output, errors = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        for pipe, kept in ((process.stdout, output), (process.stderr, errors)):
            assert pipe is not None
            selector.register(pipe, selectors.EVENT_READ, kept)
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


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    """Asks the group to end, and after a while ends it; a second Ctrl-C shortens the while."""
    try:
        until = time.monotonic() + _GRACE_S
        is_there = _send(process.pid, signal.SIGTERM)
        while is_there and time.monotonic() < until:
            process.poll()  # or it would stay there as a zombie
            time.sleep(0.01)
            is_there = _send(process.pid, 0)
    finally:
        _send(process.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            process.wait()


def _send(group: int, number: int) -> bool:
    """Whether there was anybody to send it to."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
