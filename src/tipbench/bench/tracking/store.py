"""Stores complete runs and their texts through MLflow's calls, within MLflow's limits."""

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Literal, NamedTuple

from tipbench.bench.tracking import texts
from tipbench.bench.tracking.descriptions import DESCRIPTION
from tipbench.bench.tracking.interface import (
    Addition,
    Experiment,
    FinishedRun,
    Metric,
    MlflowApi,
    Names,
    RestApi,
    StoredRun,
)
from tipbench.bench.tracking.write_markers import WriteMarkers, writers
from tipbench.core.errors import InvalidInput, TrackingError, TrackingUnreachable
from tipbench.core.untrusted import printable, shown, storable

DONE = ("FINISHED", "FAILED")  # statuses of a completely written run
_RUNS_AT_ONCE = 256  # in one transaction
_TAGS_PER_BATCH = 90  # MLflow accepts 100
_BYTES_PER_BATCH = 900_000  # MLflow accepts 1 MB
_IDS_AT_ONCE = 200  # of runs, in one search
_MAX_VALUE_LENGTH = 5_000  # of a tag or param other than our texts; MLflow would truncate it silently
_DESCRIBE_S = 2.0  # how long a description may hold up a command


@dataclass(frozen=True)
class RunDraft:
    """A finished run to be written to MLflow."""

    name: str
    started_ms: int
    ended_ms: int
    status: Literal["FINISHED", "FAILED"] = "FINISHED"
    tags: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


class RunChange(NamedTuple):
    """Tags and metrics to add to a run."""

    run: StoredRun
    tags: Mapping[str, str]
    metrics: Mapping[str, float]


class RunStore:
    """The store that all stages use: experiments, runs and texts. Every write updates the experiment's markers."""

    def __init__(self, api: MlflowApi, also_tagged: Collection[str] = ()) -> None:
        """`also_tagged` names texts that are tags even where they are files too, for scripts that read the tags."""
        self._api = api
        self._also_tagged = also_tagged
        self._markers = WriteMarkers(api)
        self.files_refused = ""  # the error that made texts go into tags instead of files; shown to the user

    @property
    def address(self) -> str:
        return self._api.address

    @property
    def under_prefix(self) -> str:
        """The URL at which the server was found, if it is not `address` but below; empty otherwise."""
        return self._api.under_prefix

    @property
    def is_shared(self) -> bool:
        """Whether other hosts may write to this store too."""
        return self._api.is_shared

    def close(self) -> None:
        self._api.close()

    def version(self) -> str | None:
        """Return a value that changes with every write, by any writer; None if finding out is not cheap."""
        return self._api.version()

    def stamp(self) -> str | None:
        """Return a value that changes with every write, by any writer, and that later processes can compare.

        None if there is no such value, or if a write right now might not change it.
        """
        return self._api.stamp()

    def rest(self) -> AbstractContextManager[RestApi]:
        """Yield MLflow's REST API; for a database file, MLflow's server is started for the block, in some seconds."""
        return self._api.rest()

    def session(self) -> AbstractContextManager[None]:
        """Share one write marker among all writes in the block; set separately, each would cost three requests."""
        return self._markers.session()

    def forget_writers(self, experiment: Experiment, markers: Iterable[str]) -> None:
        """Remove the markers of writers that are known to be gone."""
        self._markers.remove(experiment, markers)

    def find_experiment(self, name: str) -> Experiment | None:
        """Return the experiment; None if it does not exist or is deleted."""
        found = self._api.find_experiment(name)
        return None if found is None or found.deleted else found

    def experiment(self, name: str) -> Experiment:
        """Return the experiment; raise InvalidInput if it does not exist or is deleted."""
        found = self._api.find_experiment(name)
        if found is None:
            raise InvalidInput(
                f"there is no experiment '{name}' in {self.address}; 'tipbench experiments' lists them, "
                f"'tipbench collect --experiment {name}' creates it"
            )
        return self._not_deleted(found)

    def ensure_experiment(self, name: str, tags: Mapping[str, str]) -> Experiment:
        """Return the experiment, creating it if necessary; safe when several processes create it at once."""
        found = self._api.find_experiment(name) or self._api.create_experiment(name, tags)
        found = found or self._api.find_experiment(name)
        if found is None:
            raise TrackingError(
                f"MLflow at {self.address} reports that experiment '{name}' exists but does not return it"
            )
        return self._not_deleted(found)

    def foreign_runs(self, experiment: Experiment) -> int:
        """Return how many runs in the experiment were not written by tipbench."""
        if "tipbench.suite" in experiment.tags:
            return 0
        return sum("tipbench.kind" not in run.tags for run in self._api.search_runs(experiment.id, {}))

    def experiments(self, prefix: str) -> list[Experiment]:
        return sorted(self._api.list_experiments(prefix), key=lambda e: (e.created_ms, len(e.id), e.id))

    def describe_experiment(self, experiment: Experiment, description: str) -> None:
        """Set the description that MLflow shows. It is no part of the results, so it needs no write marker.

        Raises TrackingUnreachable if others keep the store busy for some seconds.
        """
        tags = _checked_values({DESCRIPTION: description})
        self._api.tag_experiment(experiment.id, DESCRIPTION, tags[DESCRIPTION], timeout_s=_DESCRIBE_S)

    def tag_experiment(self, experiment: Experiment, key: str, value: str) -> None:
        """Set a tag that is no part of the results, so that it needs no write marker."""
        self._api.tag_experiment(experiment.id, key, _checked_values({key: value})[key])

    def delete_experiment(self, experiment: Experiment) -> None:
        with self._markers.writing(experiment.id):
            self._api.delete_experiment(experiment.id)

    def restore_experiment(self, name: str) -> None:
        found = self._api.find_experiment(name)
        if found is None or not found.deleted:
            raise InvalidInput(f"there is no deleted experiment '{name}' in {self.address}")
        self._api.restore_experiment(found.id)
        self._markers.remove(found, writers(found))  # of the deleting process: MLflow allows no untagging once deleted
        with self._markers.writing(found.id):  # MLflow also restores runs that were deleted individually
            pass

    def write_run(self, experiment: Experiment, draft: RunDraft) -> str:
        """Store a run and return its id; until the last step it is RUNNING, and no reader takes it for a result."""
        with self._markers.writing(experiment.id):
            return self._write_run(experiment, draft)

    def _write_run(self, experiment: Experiment, draft: RunDraft) -> str:
        reserved = self._api.reserve_run(experiment)
        if reserved:
            self._api.insert_runs(experiment, [self._finished(reserved, draft)])
            return reserved[0]
        tags, params = _checked_values(draft.tags), _checked_values(draft.params)
        metrics = _metrics(draft.metrics, draft.ended_ms, {})
        name = printable(draft.name, 200)
        run_id, artifact_uri = self._api.create_run(experiment.id, name, draft.started_ms, tags)
        text_tags = self._write_texts(artifact_uri, draft.texts)
        self._log(run_id, metrics, params, text_tags)
        self._api.end_run(run_id, draft.status, draft.ended_ms)
        return run_id

    def write_runs(
        self, experiment: Experiment, drafts: Sequence[RunDraft], stored: Callable[[int], None] | None = None
    ) -> None:
        """Store complete runs, many in one transaction if the store supports that; call `stored` after each.

        While one transaction runs, files are written for the next one.
        """
        report = stored or (lambda _: None)
        with self.session(), ThreadPoolExecutor(1, "insert") as pool:
            inserting: Future[int] | None = None
            for start in range(0, len(drafts), _RUNS_AT_ONCE):
                finished = []
                for draft in drafts[start : start + _RUNS_AT_ONCE]:
                    reserved = self._api.reserve_run(experiment)
                    if reserved is None:
                        self.write_run(experiment, draft)
                        report(1)
                    else:
                        finished.append(self._finished(reserved, draft))
                if inserting:
                    report(inserting.result())
                inserting = pool.submit(self._insert, experiment, finished) if finished else None
            if inserting:
                report(inserting.result())

    def _insert(self, experiment: Experiment, runs: Sequence[FinishedRun]) -> int:
        with self._markers.writing(experiment.id):
            self._api.insert_runs(experiment, runs)
        return len(runs)

    def _finished(self, reserved: tuple[str, str], draft: RunDraft) -> FinishedRun:
        run_id, artifact_uri = reserved
        tags, params = _checked_values(draft.tags), _checked_values(draft.params)
        metrics = _metrics(draft.metrics, draft.ended_ms, {})
        return FinishedRun(
            run_id=run_id,
            artifact_uri=artifact_uri,
            name=printable(draft.name, 200),
            status=draft.status,
            started_ms=draft.started_ms,
            ended_ms=draft.ended_ms,
            tags={**tags, **self._write_texts(artifact_uri, draft.texts)},
            params=params,
            metrics=metrics,
        )

    @contextmanager
    def transaction(self, experiment: Experiment) -> Iterator[None]:
        """In a database file: nobody else writes in the block, and all of it is written or nothing."""
        with self._markers.writing(experiment.id), self._api.transaction():
            yield

    def extend_run(
        self,
        run: StoredRun,
        tags: Mapping[str, str],
        metrics: Mapping[str, float] | None = None,
        new_texts: Mapping[str, str] | None = None,
        at_ms: int = 0,
    ) -> None:
        """Add to a run."""
        with self._markers.writing(run.experiment_id):
            self._extend_run(run, tags, metrics, new_texts, at_ms)

    def _extend_run(
        self,
        run: StoredRun,
        tags: Mapping[str, str],
        metrics: Mapping[str, float] | None,
        new_texts: Mapping[str, str] | None,
        at_ms: int,
    ) -> None:
        plain_tags, stepped = _checked_values(tags), _metrics(metrics or {}, at_ms, run.steps)
        text_tags = self._write_texts(run.artifact_uri, new_texts or {})
        if text_tags and len(list(_chunks({**text_tags, **plain_tags}.items()))) > 1:
            # Texts first, so that they exist before the plain tags refer to them, and those are written in one call.
            self._log(run.run_id, (), {}, text_tags)
            text_tags = {}
        self._log(run.run_id, stepped, {}, {**text_tags, **plain_tags})

    def extend_runs(self, experiment: Experiment, changes: Iterable[RunChange], at_ms: int = 0) -> int:
        """Add to many runs, in one transaction if the store supports that; return how many.

        Changes may be computed as they are taken: earlier ones are written meanwhile.
        """
        waiting = iter(changes)
        first = next(waiting, None)
        if first is None:
            return 0
        done = count()

        def additions() -> Iterator[Addition]:
            for change in chain((first,), waiting):
                metrics = _metrics(change.metrics, at_ms, change.run.steps)
                next(done)
                yield Addition(change.run.run_id, metrics, _checked_values(change.tags))

        with self._markers.writing(experiment.id):  # before the transaction begins, so that others see the marker
            if not self._api.extend_runs(made := additions()):
                for addition in made:
                    self._log(addition.run_id, addition.metrics, {}, addition.tags)
        return next(done)

    def tag_run(self, experiment: Experiment, run_id: str, tags: Mapping[str, str]) -> None:
        with self._markers.writing(experiment.id):
            self._api.log_batch(run_id, (), {}, _checked_values(tags))

    def runs(self, experiment: Experiment, tags: Mapping[str, str], only: Names | None = None) -> list[StoredRun]:
        """Return the finished runs with these tags, oldest first; `only` is for callers that read nothing else."""
        return [run for run in self.all_runs(experiment, tags, only) if run.status in DONE]

    def all_runs(self, experiment: Experiment, tags: Mapping[str, str], only: Names | None = None) -> list[StoredRun]:
        """Return all runs with these tags, oldest first, including those still or only partly written."""
        return sorted(self.iter_runs(experiment, tags, only=only), key=lambda run: (run.started_ms, run.run_id))

    def iter_runs(
        self, experiment: Experiment, tags: Mapping[str, str], omit: Sequence[str] = (), only: Names | None = None
    ) -> Iterator[StoredRun]:
        """Yield the runs with these tags as they are read.

        Tags and metrics that begin with what is in `omit` are left out; `only` is for callers that read nothing else.
        """
        return self._api.search_runs(experiment.id, tags, omit, only=only)

    def newest_runs(self, experiment: Experiment, tags: Mapping[str, str]) -> Iterator[StoredRun]:
        """Yield the runs with these tags, newest first, as they are read: who stops early has read only some."""
        return self._api.search_runs(experiment.id, tags, newest_first=True)

    def runs_by_id(self, experiment: Experiment, run_ids: Sequence[str]) -> dict[str, StoredRun]:
        """Return the runs with these ids, by id; those that are gone are left out."""
        chunks = [run_ids[start : start + _IDS_AT_ONCE] for start in range(0, len(run_ids), _IDS_AT_ONCE)]
        found = (run for chunk in chunks for run in self._api.search_runs(experiment.id, {}, run_ids=chunk))
        return {run.run_id: run for run in found}

    def remove_run(self, run: StoredRun) -> None:
        with self._markers.writing(run.experiment_id):
            self._api.delete_run(run.run_id)

    def text(self, run: StoredRun, name: str) -> str | None:
        """Return a text of the run exactly as it was written; None if the run has no such text."""
        note = texts.read_note(name, run.tags)
        if note is None:
            return None
        if note.stored_in == "tags":
            return texts.from_tags(name, note, run.tags)
        return texts.from_file(name, note, self._api.get_file(run.artifact_uri, name))

    def _write_texts(self, artifact_uri: str, named_texts: Mapping[str, str]) -> dict[str, str]:
        """Write the texts as files if possible; return the tags that the caller has to log."""
        tags: dict[str, str] = {}
        if named_texts and not self.files_refused and self._api.can_store_files(artifact_uri):
            files = {}
            for name, text in named_texts.items():
                files[name], note = texts.as_file(name, text)
                tags.update(note)
            try:
                self._api.put_files(artifact_uri, files)
            except TrackingUnreachable:
                raise
            except TrackingError as error:  # a server without an artifact store
                self.files_refused = str(error)
            else:
                return {**_text_tags(named_texts, self._also_tagged), **tags}
        return _text_tags(named_texts, named_texts)

    def _log(self, run_id: str, metrics: Sequence[Metric], params: Mapping[str, str], tags: Mapping[str, str]) -> None:
        chunks = list(_chunks(tags.items())) or [()]
        for number, chunk in enumerate(chunks):
            first = number == 0
            self._api.log_batch(run_id, metrics if first else (), params if first else {}, dict(chunk))

    def _not_deleted(self, experiment: Experiment) -> Experiment:
        if experiment.deleted:
            raise InvalidInput(
                f"experiment '{experiment.name}' was deleted, and MLflow still reserves its name; choose another "
                f"name, or restore it with 'tipbench experiments restore {experiment.name}'"
            )
        return experiment


def _text_tags(named_texts: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    parts = [texts.as_tags(name, text) for name, text in named_texts.items() if name in names]
    return {key: tag for one in parts for key, tag in one.items()}


def _metrics(values: Mapping[str, float], at_ms: int, last_steps: Mapping[str, int]) -> list[Metric]:
    """Return metrics with the step after the last one, or MLflow would keep showing the old value."""
    if not math.isfinite(sum(values.values())):  # one question for all is quicker than one for each
        for key, value in values.items():
            if not math.isfinite(value):  # MLflow would store 0 and drop every metric after it
                raise TrackingError(f"the metric {key} is {value}, which MLflow can't store")
    return [Metric(key, float(value), at_ms, last_steps.get(key, -1) + 1) for key, value in values.items()]


def _checked_values(values: Mapping[str, str]) -> dict[str, str]:
    """Return the tags or params unchanged; raise TrackingError for a value that MLflow would truncate or refuse."""
    any_escaped = storable("".join(values.values())).escaped  # one search for all is quicker than one for each
    for key, value in values.items():
        if len(value) > _MAX_VALUE_LENGTH:
            raise TrackingError(f"the value of {key} has {len(value)} characters; MLflow would truncate it")
        if any_escaped and storable(value).escaped:  # SQLite would store it, PostgreSQL fails halfway through the run
            raise TrackingError(f"the value of {key} is {shown(value)}, with a character that databases can't store")
    return dict(values)


def _chunks(items: Collection[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], ...]]:
    if len(items) <= _TAGS_PER_BATCH and sum(len(key) + 6 * len(value) + 40 for key, value in items) < _BYTES_PER_BATCH:
        if items:  # however they are escaped, they fit
            yield tuple(items)
        return
    chunk: list[tuple[str, str]] = []
    size = 0
    for key, value in items:
        cost = len(json.dumps(value, ensure_ascii=False).encode("utf-8")) + len(key) + 40
        if chunk and (len(chunk) >= _TAGS_PER_BATCH or size + cost > _BYTES_PER_BATCH):
            yield tuple(chunk)
            chunk, size = [], 0
        chunk.append((key, value))
        size += cost
    if chunk:
        yield tuple(chunk)
