"""The folder of one job: its configuration, progress, log and exit status."""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

from tipbench.core.untrusted import json_text, printable
from tipbench.server.jobs.progress import Progress, read_progress
from tipbench.server.jobs.supervisor import EXIT, LOG, OLDER_LOG, PIDS


class Exit(NamedTuple):
    status: int  # negative: the signal that killed it
    ended_ms: int


class Pids(NamedTuple):
    """The processes of a job; None for one that was not started."""

    supervisor: int | None = None
    child: int | None = None


@dataclass(frozen=True)
class JobFolder:
    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.json"

    @property
    def log(self) -> Path:
        return self.path / LOG

    @property
    def has_begun(self) -> bool:
        return self.log.exists()

    def create(self, config: Mapping[str, Any]) -> None:
        self.path.mkdir(mode=0o700)
        with open_private(self.config, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as file:
            file.write(json_text(dict(config)).encode())

    def command(self, judge: str | None, retry_failed: bool, fresh: bool) -> list[str]:
        """Return the command line of the run."""
        command = [sys.executable, "-P", "-m", "tipbench", "run"]
        command += ["--config", str(self.config), "--progress", str(self.path / "progress.json")]
        command += [] if judge else ["--export", str(self.path / "judge.json")]
        command += ["--retry-failed"] if retry_failed else []
        return command + (["--fresh"] if fresh else [])

    def judge_command(self, config: Mapping[str, Any]) -> list[str]:
        """Return the command line of a job that only runs a judge."""
        command = [sys.executable, "-P", "-m", "tipbench", "judge", "--experiment", str(config["experiment"])]
        command += ["--mlflow-url", str(config["mlflow_url"]), "--run", str(config["judge"])]
        if "ollama_url" in config:  # not in jobs that an earlier version queued
            command += ["--ollama-url", str(config["ollama_url"])]
        return [*command, "--progress", str(self.path / "progress.json")]

    def publish_command(self, config: Mapping[str, Any]) -> list[str]:
        """Return the command line of a job that only shows an experiment on MLflow's pages."""
        command = [sys.executable, "-P", "-m", "tipbench", "publish", "--experiment", str(config["experiment"])]
        return [*command, "--mlflow-url", str(config["mlflow_url"]), "--progress", str(self.path / "progress.json")]

    def progress(self) -> Progress | None:
        return read_progress(self.path / "progress.json")

    def exit(self) -> Exit | None:
        """Return how the run ended; None if it has not ended or its exit could not be recorded."""
        data = self._numbers(EXIT)
        return Exit(data["status"], data["ended_ms"]) if data.keys() >= {"status", "ended_ms"} else None

    def pids(self) -> Pids:
        data = self._numbers(PIDS)
        return Pids(data.get("supervisor"), data.get("child"))

    def log_end(self, last_bytes: int) -> str:
        """Return the last bytes of the log as printable text.

        It starts at the beginning of a line, unless a single line is longer than all of it.
        """
        text = _read_end(self.log, last_bytes)
        if len(text) < last_bytes:
            text = _read_end(self.path / OLDER_LOG, last_bytes - len(text)) + text
        if len(text) == last_bytes:
            _, newline, whole_lines = text.partition(b"\n")
            text = whole_lines if newline else text
        return "\n".join(printable(line) for line in text.decode("utf-8", "replace").split("\n"))

    def logs(self) -> list[Path]:
        """Return the files of the log that there are."""
        return [path for path in (self.log, self.path / OLDER_LOG) if path.exists()]

    def remove(self) -> None:
        if self.path.exists():
            shutil.rmtree(self.path)

    def _numbers(self, name: str) -> dict[str, int]:
        try:
            data = json.loads((self.path / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return {key: value for key, value in data.items() if isinstance(value, int)} if isinstance(data, dict) else {}


def open_private(path: Path, flags: int) -> IO[bytes]:
    """Open a file for writing that only its owner can ever read."""
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def _read_end(path: Path, count: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - count))
            return file.read(count)
    except FileNotFoundError:
        return b""
