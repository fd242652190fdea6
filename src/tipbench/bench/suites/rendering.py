"""Untrusted templates: a suite's templates are compiled and rendered in a child process with limits.

A few characters of template can loop for ever or fill the memory, even at compile time, when Jinja evaluates constants.
So the process has a memory limit, and a timer ends it if one template takes too long.
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
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, BinaryIO

from tipbench.bench.suites.templates import TemplateProblem, TextTemplate
from tipbench.core.processes import module_command, start_process

SECONDS = 2.0  # time limit for one template and one scenario
_BYTES = 512_000_000
LONGEST_TEXT = 1_000_000  # characters
_TOO_MUCH = f"template error: it needs more than {SECONDS:g} s or {_BYTES // 1_000_000} MB; make its loops shorter"
_LENGTH = struct.Struct("!I")


class TemplateTooCostly(TemplateProblem):
    """A template exceeded the time or memory limit."""


class GuardedTemplate:
    """Like TextTemplate, but compiled and rendered in the process with limits."""

    def __init__(self, source: str) -> None:
        self.source = source
        _process.ask(source, None)

    def render(self, values: Mapping[str, Any]) -> str:
        return _process.ask(self.source, values)


class _RenderingProcess:
    """The child process that renders: started on demand, shared by all threads, restarted if it has ended."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    def ask(self, source: str, values: Mapping[str, Any] | None) -> str:
        """Render the template; without values, only compile it and return "". Raises TemplateProblem."""
        request = pickle.dumps((source, None if values is None else dict(values)))
        with self._lock:
            line = self._exchange(request)
        if not line:
            raise TemplateTooCostly(1, _TOO_MUCH)
        answer = json.loads(line)
        if "problem" in answer:
            raise TemplateProblem(answer["line"], answer["problem"])
        return str(answer["text"])

    def _exchange(self, request: bytes) -> bytes:
        """Send a request and return the answer, one line; empty if the process ended instead."""
        if self._child is None or self._child.poll() is not None:
            self.close()
            command = module_command("tipbench.bench.suites.rendering", str(self._seconds))
            self._child = start_process(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )  # ends when its stdin closes
        assert self._child.stdin
        assert self._child.stdout
        try:
            with suppress(BrokenPipeError):
                self._child.stdin.write(_LENGTH.pack(len(request)) + request)
                self._child.stdin.flush()
            line = self._child.stdout.readline()
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


_process = _RenderingProcess()
os.register_at_fork(after_in_child=lambda: globals().update(_process=_RenderingProcess()))


def _serve(requests: BinaryIO, answers: BinaryIO, seconds: float) -> None:
    with suppress(ValueError, OSError):  # not supported everywhere; the timer still applies
        resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
    template = lru_cache(64)(TextTemplate)
    while header := requests.read(_LENGTH.size):
        source, values = pickle.loads(requests.read(*_LENGTH.unpack(header)))  # trusted: sent by our parent
        signal.setitimer(signal.ITIMER_REAL, seconds)  # its signal has no handler, so it kills this process
        try:
            compiled = template(source)
            text = "" if values is None else compiled.render(values)
            if len(text) > LONGEST_TEXT:
                raise TemplateProblem(1, f"template error: its text is longer than {LONGEST_TEXT:,} characters")
            answer: dict[str, Any] = {"text": text}
        except TemplateProblem as problem:
            answer = {"line": problem.line, "problem": str(problem)[:500]}
        except MemoryError:
            answer = {"line": 1, "problem": _TOO_MUCH}
        except Exception as error:  # noqa: BLE001 - a template can make Jinja raise anything
            answer = {"line": 1, "problem": f"template error: {error}"[:500]}
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    _serve(sys.stdin.buffer, sys.stdout.buffer, float(sys.argv[1]))
