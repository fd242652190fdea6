"""Runners for tests: whatever a test leaves running is ended, by its own process group."""

import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tipbench.bench.options import Options, make_options
from tipbench.core.settings import Settings
from tipbench.server.jobs.interface import Job
from tipbench.server.jobs.job_folder import JobFolder
from tipbench.server.jobs.job_watch import Processes, kill_group
from tipbench.server.jobs.subprocess import SubprocessRunner


def until(condition: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)


class Bench:
    """One home, the runners that were opened on it, and requests for it."""

    def __init__(self, home: Path, folder: Path) -> None:
        self.home = home
        self.folder = folder
        self._open: list[SubprocessRunner] = []

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *_: object) -> None:
        for runner in self._open:
            runner.close()
        processes = Processes()
        for path in (self.home / "server" / "jobs").glob("*"):
            while group := processes.find_group(JobFolder(path), None):
                kill_group(group)

    def open(self, grace_s: float = 30.0) -> SubprocessRunner:
        runner = SubprocessRunner(self.home, Settings(), time.time, lambda: uuid.uuid4().hex[:16], grace_s)
        self._open.append(runner)
        return runner

    def job_folder(self, job: Job) -> JobFolder:
        return JobFolder(self.home / "server" / "jobs" / job.id)

    def request(self, experiment: str = "x", latency_s: float = 0.0, **given: Any) -> Options:
        """Two cells on a scripted model that takes so long for each."""
        script = self.folder / f"takes-{latency_s}.yaml"
        script.write_text(yaml.safe_dump({"parameters": 1_000_000, "latency_s": latency_s}))
        wanted = {
            "models": f"scripted/{script}",
            "prompts": "v1",
            "n_scenarios": 2,
            "experiment": f"tip-bench-{experiment}",
            "mlflow_url": f"sqlite:///{self.folder / 'm.db'}",
            "judge": "lexical",
        }
        return make_options({**wanted, **given})


ENDLESS = 60.0  # seconds a cell: it runs until somebody ends it


def is_collecting(runner: SubprocessRunner, job: Job) -> bool:
    return runner.progress(job.id).cells > 0


def has_ended(runner: SubprocessRunner, job: Job) -> bool:
    return runner.job(job.id).ended
