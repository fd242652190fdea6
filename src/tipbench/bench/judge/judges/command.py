"""A judge that is a program: it reads the judge file as JSON on stdin and writes it, filled in, to stdout.

Scores alone by slot are enough, and prose or a code fence around them does no harm.
"""

import re
import shlex
import signal
from pathlib import Path
from typing import Any

from tipbench.bench.judge.answers import filled, find_scores
from tipbench.bench.judge.judges.interface import JudgeName
from tipbench.bench.judge.judges.prompt import read_reply
from tipbench.bench.judge.verify import MOST_BYTES
from tipbench.core.errors import InvalidInput, JudgeFailed
from tipbench.core.files import atomic_write, make_private_folder
from tipbench.core.paths import judged_folder
from tipbench.core.processes import ProcessResult, ProcessTimedOut, TooMuchOutput, run_bounded
from tipbench.core.settings import Settings
from tipbench.core.untrusted import json_text, printable

_SETTING = "TIPBENCH_JUDGE_COMMAND"


class CommandJudge:
    """Runs any program as a judge, without a shell and without our secrets."""

    def __init__(
        self, command: str, identity: JudgeName, timeout_s: float = 3600, settings: Settings | None = None
    ) -> None:
        self.identity = identity
        self._settings = settings or Settings()
        self._timeout_s = timeout_s
        try:
            self._arguments = shlex.split(command)
        except ValueError as error:
            raise InvalidInput(f"{_SETTING} can't be read as a command: {error}") from None
        if not self._arguments:
            raise InvalidInput(f"{_SETTING} is empty; set it to the program that judges")
        self._who = f"the judge program {printable(self._arguments[0], 120)}"

    def score(self, file: dict[str, Any]) -> dict[str, Any]:
        ended = self._run(json_text(file, indent=None).encode())
        if ended.status:
            message = printable(ended.last_error_line, 300) or "it wrote nothing to stderr"
            raise JudgeFailed(f"{self._who} {_describe_exit(ended.status)}: {message}")
        try:
            reply = read_reply(ended.output, self._who)
            if isinstance(reply.get("items"), list):
                return reply
        except JudgeFailed as error:
            why = str(error)
        else:
            why = f"{self._who} answered with JSON that has no scores of this batch"
        scores = find_scores(ended.output.decode("utf-8", "replace"), {item["slot"] for item in file["items"]})
        if scores:
            return filled(file, scores)
        raise JudgeFailed(f"{why}; its answer was saved in {self._save(str(file['batch']), ended.output)}")

    def _save(self, batch: str, answer: bytes) -> Path:
        """Save an answer that can't be used, and return where."""
        folder = judged_folder(self._settings.home)
        make_private_folder(folder)
        path = folder / f"{re.sub(r'[^A-Za-z0-9]+', '-', batch)[:64]}-answer.txt"
        atomic_write(path, answer, mode=0o600)
        return path

    def _run(self, stdin: bytes) -> ProcessResult:
        try:
            return run_bounded(self._arguments, stdin, self._settings.judge_environment(), self._timeout_s, MOST_BYTES)
        except ProcessTimedOut:
            raise JudgeFailed(
                f"{self._who} was stopped: it did not answer within {self._timeout_s:g} s; "
                "TIPBENCH_JUDGE_TIMEOUT sets the limit"
            ) from None
        except TooMuchOutput:
            raise JudgeFailed(
                f"{self._who} was stopped: it wrote more than {MOST_BYTES // 1_000_000} MB; it must write nothing "
                "but the file"
            ) from None
        except (OSError, ValueError) as error:  # ValueError: a NUL in the command
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise JudgeFailed(f"{self._who} can't be run: {printable(why, 200)}; check {_SETTING}") from error


def _describe_exit(status: int) -> str:
    if status > 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"
