"""Templates of a suite that somebody else may have written: compiled and rendered in a process with limits.

A template can loop for ever or fill the memory with a few letters, at compile time too, where Jinja computes what is
constant. So the process has a limit of memory, and ends by itself when one template takes too long.
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

SECONDS = 2.0  # for one template and one scenario
_BYTES = 512_000_000
LONGEST_TEXT = 1_000_000  # characters
_TOO_MUCH = f"template error: it takes more than {SECONDS:g} s or {_BYTES // 1_000_000} MB; make its loops shorter"
_LENGTH = struct.Struct("!I")


class TemplateTooCostly(TemplateProblem):
    """A template that was given up for the time or the memory that it takes."""


class GuardedTemplate:
    """Like a TextTemplate, rendered in the process with limits."""

    def __init__(self, source: str) -> None:
        self.source = source
        _process.ask(source, None)

    def render(self, values: Mapping[str, Any]) -> str:
        return _process.ask(self.source, values)


class _RenderingProcess:
    """Started when it is needed, one for all threads; one that ended is started again."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    def ask(self, source: str, values: Mapping[str, Any] | None) -> str:
        """The rendered text; only checks the template where there are no values. Raises TemplateProblem."""
        request = pickle.dumps((source, None if values is None else dict(values)))
        with self._lock:
            line = self._answer(request)
        if not line:
            raise TemplateTooCostly(1, _TOO_MUCH)
        answer = json.loads(line)
        if "problem" in answer:
            raise TemplateProblem(answer["line"], answer["problem"])
        return str(answer["text"])

    def _answer(self, request: bytes) -> bytes:
        """One line; nothing if the process ended instead."""
        if self._child is None or self._child.poll() is not None:
            self.close()
            command = module_command("tipbench.bench.suites.rendering", str(self._seconds))
            self._child = start_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # ends with its input
        assert self._child.stdin
        assert self._child.stdout
        try:
            with suppress(BrokenPipeError):
                self._child.stdin.write(_LENGTH.pack(len(request)) + request)
                self._child.stdin.flush()
            line = self._child.stdout.readline()
        except BaseException:  # interrupted: its answer must not be taken for that to the next request
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
    with suppress(ValueError, OSError):  # not every system has it; the timer holds anyway
        resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
    template = lru_cache(64)(TextTemplate)
    while header := requests.read(_LENGTH.size):
        source, values = pickle.loads(requests.read(*_LENGTH.unpack(header)))  # of our own parent
        signal.setitimer(signal.ITIMER_REAL, seconds)  # nobody handles its signal: it ends this process
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
        except Exception as error:  # noqa: BLE001 - whatever a template can make of Jinja
            answer = {"line": 1, "problem": f"template error: {error}"[:500]}
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    _serve(sys.stdin.buffer, sys.stdout.buffer, float(sys.argv[1]))
