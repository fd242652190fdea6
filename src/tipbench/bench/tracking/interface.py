"""The subset of MLflow's API that tipbench uses, served over REST (`mlflow_client`) or in process (`embedded`)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

RunStatus = Literal["RUNNING", "FINISHED", "FAILED"]
# Prefixes of tags and metrics that no comparison uses: texts above all.
NOT_COMPARED = ("artifact:", "tipbench.text:", "mlflow.", "ram/")
NEWEST_AT_ONCE = 20  # runs that are read together for who reads newest first, and only the newest


class Names(NamedTuple):
    """Names of what is read of runs."""

    tags: tuple[str, ...] = ()
    params: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """An MLflow experiment."""

    id: str
    name: str
    artifact_location: str = ""
    deleted: bool = False
    created_ms: int = 0
    tags: Mapping[str, str] = field(default_factory=dict)


class Metric(NamedTuple):
    """One value of a metric. MLflow shows the value with the highest step."""

    key: str
    value: float
    timestamp_ms: int
    step: int = 0


@dataclass(frozen=True)
class FinishedRun:
    """A finished run that is not in MLflow yet; its texts are already written as files, or are among the tags."""

    run_id: str
    artifact_uri: str
    name: str
    status: RunStatus
    started_ms: int
    ended_ms: int
    tags: Mapping[str, str]
    params: Mapping[str, str]
    metrics: Sequence[Metric]


class StoredRun(NamedTuple):
    """An MLflow run as read from the store, with the latest value and step of each metric."""

    run_id: str
    status: str
    started_ms: int
    artifact_uri: str
    tags: Mapping[str, str]
    params: Mapping[str, str]
    metrics: Mapping[str, float]
    steps: Mapping[str, int]
    experiment_id: str


class Addition(NamedTuple):
    """What is added to a finished run."""

    run_id: str
    metrics: Sequence[Metric]
    tags: Mapping[str, str]


class RestApi(Protocol):
    """MLflow's REST API, for calls beyond experiments and runs."""

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Send a request and return the answer's JSON; raise TrackingError if MLflow refuses.

        The body of a GET is sent as its query.
        """
        ...

    def pages(self, path: str, key: str, query: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Post a search and yield the entries of all its pages; `key` is their name in the answer."""
        ...


class MlflowApi(Protocol):
    """MLflow's calls; foreign errors are already translated. The caller ensures that values fit MLflow's limits."""

    address: str  # for display, without credentials
    under_prefix: str  # a server's URL, if it was found below `address`; else empty
    is_shared: bool  # True for a server: other hosts may write too

    def find_experiment(self, name: str) -> Experiment | None: ...

    def create_experiment(self, name: str, tags: Mapping[str, str]) -> Experiment | None:
        """Create the experiment and return it; None if the name is already taken."""
        ...

    def list_experiments(self, prefix: str) -> list[Experiment]: ...

    def delete_experiment(self, experiment_id: str) -> None: ...

    def restore_experiment(self, experiment_id: str) -> None: ...

    def tag_experiment(self, experiment_id: str, key: str, value: str, timeout_s: float | None = None) -> None:
        """Set a tag; raise TrackingUnreachable if it takes longer than `timeout_s`, where that can be limited."""
        ...

    def untag_experiment(self, experiment_id: str, key: str) -> None:
        """Remove a tag. Some implementations raise an error if there is no such tag."""
        ...

    def create_run(self, experiment_id: str, name: str, started_ms: int, tags: Mapping[str, str]) -> tuple[str, str]:
        """Create a run and return its id and artifact URI."""
        ...

    def log_batch(
        self, run_id: str, metrics: Sequence[Metric], params: Mapping[str, str], tags: Mapping[str, str]
    ) -> None: ...

    def reserve_run(self, experiment: Experiment) -> tuple[str, str] | None:
        """Return the id and artifact URI for a run that `insert_runs` will write; None if this API can't do that."""
        ...

    def insert_runs(self, experiment: Experiment, runs: Sequence[FinishedRun]) -> None:
        """Insert finished runs in one transaction, all or none."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Let nobody else write in the block, and write all of it or nothing, if this API can do that."""
        ...

    def extend_runs(self, additions: Iterable[Addition]) -> bool:
        """Add to runs in one transaction, all or nothing; return False, and take none, if this API can't do that."""
        ...

    def end_run(self, run_id: str, status: RunStatus, ended_ms: int) -> None: ...

    def search_runs(
        self,
        experiment_id: str,
        tags: Mapping[str, str],
        omit: Sequence[str] = (),
        run_ids: Sequence[str] = (),
        only: Names | None = None,
        newest_first: bool = False,
    ) -> Iterator[StoredRun]:
        """Yield the runs with these tags lazily, oldest or newest first, each run once.

        With `omit`, tags and metrics whose keys begin so may be left out, and all steps; so it is not for callers that
        write. With `run_ids`, at most some hundreds, only these runs are read. With `only`, everything else may be
        left out. `newest_first` is for callers that take only some.
        """
        ...

    def delete_run(self, run_id: str) -> None: ...

    def can_store_files(self, artifact_uri: str) -> bool:
        """Return whether files below this URI can be written and read through this API."""
        ...

    def put_files(self, artifact_uri: str, files: Mapping[str, bytes]) -> None: ...

    def get_file(self, artifact_uri: str, name: str) -> bytes: ...

    def version(self) -> str | None:
        """Return a value that changes with every write, by any writer; None if finding out is not cheap."""
        ...

    def stamp(self) -> str | None:
        """Return a value that later processes can compare to see whether anything was written since.

        None if there is none, or if a write right now might not change it.
        """
        ...

    def rest(self) -> AbstractContextManager[RestApi]:
        """Yield MLflow's REST API; for a database file, MLflow's server is started for the block, in some seconds."""
        ...

    def close(self) -> None: ...


def run_filter(tags: Mapping[str, str], run_ids: Sequence[str] = ()) -> str:
    """Return the MLflow search filter for runs with all of these tags and, if ids are given, one of these ids."""
    conditions = [f"tags.`{key}` = '{value}'" for key, value in tags.items()]
    if run_ids:
        ids = ", ".join(f"'{run_id}'" for run_id in run_ids)
        conditions.append(f"attributes.run_id IN ({ids})")
    return " AND ".join(conditions)
