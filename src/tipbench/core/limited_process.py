"""A child process that works on untrusted input, with limits on time and memory for each request.

A few characters of template or pattern can loop for ever or fill the memory, and nothing inside a Python process can
stop that. So the work is done in a child: a timer that nobody handles ends it, whatever it is doing, and the next
request starts another one.
"""

import atexit
import json
import os
import pickle
import resource
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, BinaryIO

from tipbench.core.processes import module_command, start_process

MAX_BYTES = 512_000_000
_LENGTH = struct.Struct("!I")
_MAX_REQUEST = 2**32 - 1
_WALL_FACTOR = 10  # the limit on time counts processor time; a stalled process is ended after this many times that


class OverLimit(Exception):
    """A request took more time or memory than it may."""


class LimitedProcess:
    """The child process: started on demand, shared by all threads, started again if it has ended.

    `module` is run as a program; it has to call `serve`.
    """

    def __init__(self, module: str, seconds: float) -> None:
        self._module = module
        self._seconds = seconds
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)
        os.register_at_fork(after_in_child=self._forget)

    def ask(self, request: Any) -> Any:
        """Send a request and return the answer, as plain JSON values. Raises OverLimit."""
        return self.ask_all([request])[0]

    def ask_all(self, requests: Sequence[Any]) -> list[Any]:
        """Send several requests at once, which is quicker than one by one, and return their answers in order.

        Together they may take what one of them may. Raises OverLimit if it is more, without saying which it was.
        """
        content = pickle.dumps(requests)
        if len(content) > _MAX_REQUEST:
            raise OverLimit
        with self._lock:
            line = self._exchange(content)
        if not line:
            raise OverLimit
        answer = json.loads(line)
        if "over_limit" in answer:
            raise OverLimit
        answers: list[Any] = answer["answers"]
        return answers

    def start(self) -> None:
        """Start the child now, so that it is ready when the first request comes; it takes 0.1 s."""
        with self._lock:
            self._running()

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._child is None or self._child.poll() is not None:
            self.close()
            command = module_command(self._module, str(self._seconds))
            self._child = start_process(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )  # ends when its stdin closes
        return self._child

    def _exchange(self, request: bytes) -> bytes:
        """Send the requests and return the answers, one line; empty if the process ended instead."""
        child = self._running()
        assert child.stdin
        assert child.stdout
        try:
            with suppress(BrokenPipeError):
                child.stdin.write(_LENGTH.pack(len(request)) + request)
                child.stdin.flush()
            line = child.stdout.readline()
        except BaseException:  # interrupted: the pending answer must not be read as that of the next request
            self.close()
            raise
        if not line.endswith(b"\n"):
            self.close()
            return b""
        return line

    def close(self) -> None:
        if self._child:
            self._child.kill()
            with suppress(BrokenPipeError):
                self._child.communicate()
            self._child = None

    def _forget(self) -> None:
        """After a fork: the child process is the parent's, and its lock may be held by a thread that is not here."""
        self._lock = threading.Lock()
        self._child = None


def serve(work: Callable[[Any], Any]) -> None:
    """Answer requests from standard input until it closes: the main program of the child process.

    `work` returns plain JSON values. A MemoryError that it raises is reported as over the limit.
    """
    _serve(sys.stdin.buffer, sys.stdout.buffer, work, float(sys.argv[1]))


def _serve(requests: BinaryIO, answers: BinaryIO, work: Callable[[Any], Any], seconds: float) -> None:
    with suppress(ValueError, OSError):  # not supported everywhere; the timers still apply
        resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    while header := requests.read(_LENGTH.size):
        content = requests.read(*_LENGTH.unpack(header))
        try:
            _set_timers(seconds)
            asked = pickle.loads(content)  # trusted: sent by our parent
            answer = json.dumps({"answers": [work(request) for request in asked]})
        except MemoryError:
            answer = json.dumps({"over_limit": True})
        _set_timers(0)
        answers.write(answer.encode() + b"\n")
        answers.flush()


def _set_timers(seconds: float) -> None:
    """Set or clear the timers; their signals have no handlers, so they kill this process."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, seconds * _WALL_FACTOR)
