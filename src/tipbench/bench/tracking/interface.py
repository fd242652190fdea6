"""The few calls that tipbench needs of MLflow, answered by a server (`mlflow_client`) or in process (`embedded`)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol

RunStatus = Literal["RUNNING", "FINISHED", "FAILED"]
# How tags and metrics begin that a brief reading may leave out: texts, and what nobody compares by.
NOT_IN_BRIEF = ("artifact:", "tipbench.text:", "mlflow.", "ram/")


@dataclass(frozen=True)
class Experiment:
    """An MLflow experiment."""

    id: str
    name: str
    artifact_location: str = ""
    deleted: bool = False
    created_ms: int = 0
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Metric:
    """One value of a metric. MLflow shows the one with the highest step."""

    key: str
    value: float
    timestamp_ms: int
    step: int = 0


@dataclass(frozen=True)
class FinishedRun:
    """A run that is over and not in MLflow yet; its texts are files already, or among the tags."""

    run_id: str
    artifact_uri: str
    name: str
    status: RunStatus
    started_ms: int
    ended_ms: int
    tags: Mapping[str, str]
    params: Mapping[str, str]
    metrics: Sequence[Metric]


@dataclass(frozen=True)
class StoredRun:
    """An MLflow run as it was read; of each metric the latest value and its step."""

    run_id: str
    status: str
    started_ms: int
    artifact_uri: str
    tags: Mapping[str, str]
    params: Mapping[str, str]
    metrics: Mapping[str, float]
    steps: Mapping[str, int]
    experiment_id: str


class MlflowApi(Protocol):
    """MLflow's calls; errors are already ours. Keys and values fit MLflow's limits, the caller sees to that."""

    address: str  # for people, without credentials
    is_shared: bool  # a server: other hosts may write too

    def find_experiment(self, name: str) -> Experiment | None: ...

    def create_experiment(self, name: str, tags: Mapping[str, str]) -> Experiment | None:
        """None when the name is taken by now."""
        ...

    def list_experiments(self, prefix: str) -> list[Experiment]: ...

    def delete_experiment(self, experiment_id: str) -> None: ...

    def restore_experiment(self, experiment_id: str) -> None: ...

    def tag_experiment(self, experiment_id: str, key: str, value: str) -> None: ...

    def untag_experiment(self, experiment_id: str, key: str) -> None:
        """Some refuse it where there is no such tag."""
        ...

    def create_run(self, experiment_id: str, name: str, started_ms: int, tags: Mapping[str, str]) -> tuple[str, str]:
        """The new run's id and its artifact URI."""
        ...

    def log_batch(
        self, run_id: str, metrics: Sequence[Metric], params: Mapping[str, str], tags: Mapping[str, str]
    ) -> None: ...

    def reserve_run(self, experiment: Experiment) -> tuple[str, str] | None:
        """Id and artifact URI of a run that `insert_runs` will write; None when this API has no such way."""
        ...

    def insert_runs(self, experiment: Experiment, runs: Sequence[FinishedRun]) -> None:
        """Many finished runs at once, all or none."""
        ...

    def together(self) -> AbstractContextManager[None]:
        """What is logged in the block is written at once, all or none, where this API has a way for that."""
        ...

    def end_run(self, run_id: str, status: RunStatus, ended_ms: int) -> None: ...

    def search_runs(self, experiment_id: str, tags: Mapping[str, str], brief: bool = False) -> Iterator[StoredRun]:
        """The runs with these tags, the oldest first, each run once; read as they are asked for.

        Brief: for whoever reads no texts and writes nothing; what begins as in NOT_IN_BRIEF may be left out, and steps.
        """
        ...

    def delete_run(self, run_id: str) -> None: ...

    def can_store_files(self, artifact_uri: str) -> bool:
        """Whether files below this URI can be written and read through this API."""
        ...

    def put_files(self, artifact_uri: str, files: Mapping[str, bytes]) -> None: ...

    def get_file(self, artifact_uri: str, name: str) -> bytes: ...

    def version(self) -> str | None:
        """Another one after every write, whoever wrote; None where that can't be told at once."""
        ...

    def close(self) -> None: ...


def tag_filter(tags: Mapping[str, str]) -> str:
    """MLflow's words for "has these tags"."""
    return " AND ".join(f"tags.`{key}` = '{value}'" for key, value in tags.items())
