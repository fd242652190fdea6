"""What every runner can do: take a request, run all phases of it somewhere, and tell how that goes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from tipbench.bench.options import Options
from tipbench.core.errors import NotFound
from tipbench.server.jobs.progress import Progress

JobState = Literal["queued", "running", "finished", "failed", "cancelled"]
ENDED: frozenset[JobState] = frozenset(("finished", "failed", "cancelled"))


class UnknownJob(NotFound):
    """There is no such job."""


@dataclass(frozen=True)
class Job:
    """A run that was asked for. It holds no secret: it may be listed and shown."""

    id: str
    state: JobState
    config: Mapping[str, Any]  # the configuration as it was asked for, defaults filled in
    created_ms: int
    started_ms: int | None = None
    ended_ms: int | None = None
    exit_status: int | None = None  # 0 all done, 1 done with failed cells; below 0: ended by that signal
    message: str = ""  # why it waits, failed or was cancelled: one sentence
    cancelling: bool = False  # somebody asked for its end, and it is not there yet
    links: Mapping[str, str] = field(default_factory=dict)  # where else it can be seen, by name

    @property
    def experiment(self) -> str:
        return str(self.config["experiment"])

    @property
    def ended(self) -> bool:
        return self.state in ENDED


class Runner(Protocol):
    """One place where runs happen. All of it may be called from several threads.

    Raises RunnerError where the place can't be asked.
    """

    is_here: bool  # on this machine, with its engines and its judges' settings

    def start(self, options: Options, retry_failed: bool = False, fresh: bool = False) -> Job:
        """Takes the run; it begins at once or waits its turn."""
        ...

    def jobs(self, limit: int = 100, before_ms: int | None = None) -> list[Job]:
        """The newest first."""
        ...

    def job(self, job_id: str) -> Job:
        """Raises UnknownJob."""
        ...

    def progress(self, job_id: str) -> Progress:
        """How far it is; what it says when it ended stays."""
        ...

    def log(self, job_id: str, last_bytes: int = 20_000) -> str:
        """The end of what it printed, from a line's beginning; printable."""
        ...

    def cancel(self, job_id: str) -> Job:
        """Asks for its end; a job that has ended stays as it is."""
        ...

    def close(self) -> None:
        """Stops watching. Jobs that run go on."""
        ...
