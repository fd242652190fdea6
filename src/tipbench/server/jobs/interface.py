"""The interface of runners: accept a request, run all its phases somewhere, and report progress."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from tipbench.bench.options import Options
from tipbench.core.errors import NotFound
from tipbench.server.jobs.progress import Progress

JobState = Literal["queued", "running", "finished", "failed", "cancelled"]
ACTION, JUDGE, PUBLISH = "action", "judge", "publish"  # in the configuration of a job that only does this
ENDED: frozenset[JobState] = frozenset(("finished", "failed", "cancelled"))


class UnknownJob(NotFound):
    """The job does not exist."""


@dataclass(frozen=True)
class Job:
    """A requested run. It holds no secrets, so it can be listed and shown."""

    id: str
    state: JobState
    config: Mapping[str, Any]  # the requested configuration with defaults filled in
    created_ms: int
    started_ms: int | None = None
    ended_ms: int | None = None
    exit_status: int | None = None  # 0: all done; 1: done with failed cells; negative: killed by that signal
    message: str = ""  # one sentence: why it waits, failed or was cancelled
    cancelling: bool = False  # cancellation was requested, but the job has not ended yet
    links: Mapping[str, str] = field(default_factory=dict)  # name → URL of another page that shows it

    @property
    def experiment(self) -> str:
        return str(self.config["experiment"])

    @property
    def is_judging(self) -> bool:
        """Whether it only runs a judge, and generates nothing."""
        return self.config.get(ACTION) == JUDGE

    @property
    def is_publishing(self) -> bool:
        """Whether it only shows an experiment on MLflow's pages."""
        return self.config.get(ACTION) == PUBLISH

    @property
    def ended(self) -> bool:
        return self.state in ENDED


class Runner(Protocol):
    """A backend that executes runs. All methods are thread-safe.

    They raise RunnerError if the backend can't be reached.
    """

    is_local: bool  # runs on this machine, with its engines and judge settings

    def start(self, options: Options, retry_failed: bool = False, fresh: bool = False) -> Job:
        """Accept a run; it starts at once or is queued."""
        ...

    def judge(self, options: Options) -> Job:
        """Accept a job that has the options' judge score what is pending in their experiment."""
        ...

    def publish(self, options: Options) -> Job:
        """Accept a job that shows the options' experiment on MLflow's pages."""
        ...

    def jobs(self, limit: int = 100, before_ms: int | None = None) -> list[Job]:
        """Return jobs, newest first."""
        ...

    def job(self, job_id: str) -> Job:
        """Return the job; raise UnknownJob if there is none."""
        ...

    def progress(self, job_id: str) -> Progress:
        """Return the job's progress; after its end, the last that it reported."""
        ...

    def log(self, job_id: str, last_bytes: int = 20_000) -> str:
        """Return the end of the job's output, starting at the beginning of a line and made printable."""
        ...

    def cancel(self, job_id: str) -> Job:
        """Request the job's cancellation; a job that has ended is left unchanged."""
        ...

    def close(self) -> None:
        """Stop watching jobs. Running jobs continue."""
        ...
