"""Whole runs and whole texts over MLflow's calls, kept within MLflow's limits."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Literal

from tipbench.bench.tracking import texts
from tipbench.bench.tracking.interface import Experiment, FinishedRun, Metric, MlflowApi, StoredRun
from tipbench.bench.tracking.write_markers import Marks, writers
from tipbench.core.errors import InvalidInput, TrackingError, TrackingUnreachable
from tipbench.core.untrusted import printable, shown, storable

DONE = ("FINISHED", "FAILED")  # the statuses of a run that is all there
_TAGS_A_BATCH = 90  # MLflow takes 100
_CHARS_A_BATCH = 900_000  # MLflow takes 1 MB
_LONGEST_VALUE = 5_000  # of a tag or param that is no text of ours; MLflow would cut it silently


@dataclass(frozen=True)
class RunDraft:
    """A run that is over, as it shall stand in MLflow."""

    name: str
    started_ms: int
    ended_ms: int
    status: Literal["FINISHED", "FAILED"] = "FINISHED"
    tags: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RunChange:
    """What is to be added to a run."""

    run: StoredRun
    tags: Mapping[str, str]
    metrics: Mapping[str, float]


class RunStore:
    """What the stages use: experiments, runs and their texts. Every write leaves its mark on the experiment."""

    def __init__(self, api: MlflowApi) -> None:
        self._api = api
        self._marks = Marks(api)
        self.files_refused = ""  # why texts went into tags after a file was refused; for the user to see

    @property
    def address(self) -> str:
        return self._api.address

    @property
    def is_shared(self) -> bool:
        """Whether other hosts may write into it too."""
        return self._api.is_shared

    def close(self) -> None:
        self._api.close()

    def version(self) -> str | None:
        """Another one after every write, whoever wrote; None where that can't be told at once."""
        return self._api.version()

    def session(self) -> AbstractContextManager[None]:
        """Around many writes: they leave one mark together (`marks`), where each alone would cost three requests."""
        return self._marks.session()

    def forget_writers(self, experiment: Experiment, marks: Iterable[str]) -> None:
        """Takes away the marks of writers that are known to be gone."""
        self._marks.take_away(experiment, marks)

    def find_experiment(self, name: str) -> Experiment | None:
        """The experiment, unless there is none or it is deleted."""
        found = self._api.find_experiment(name)
        return None if found is None or found.deleted else found

    def experiment(self, name: str) -> Experiment:
        """The experiment, or an error that says which ones there are."""
        found = self._api.find_experiment(name)
        if found is None:
            raise InvalidInput(
                f"there is no experiment '{name}' in {self.address}; 'tipbench experiments' lists them, "
                f"'tipbench collect --experiment {name}' makes it"
            )
        return self._not_deleted(found)

    def ensure_experiment(self, name: str, tags: Mapping[str, str]) -> Experiment:
        """The experiment, made if need be; whoever else makes it at the same time, there is one."""
        found = self._api.find_experiment(name) or self._api.create_experiment(name, tags)
        found = found or self._api.find_experiment(name)
        if found is None:
            raise TrackingError(f"MLflow at {self.address} says that experiment '{name}' exists and does not show it")
        return self._not_deleted(found)

    def foreign_runs(self, experiment: Experiment) -> int:
        """How many runs in the experiment are not tipbench's."""
        if "tipbench.suite" in experiment.tags:
            return 0
        return sum("tipbench.kind" not in run.tags for run in self._api.search_runs(experiment.id, {}))

    def experiments(self, prefix: str) -> list[Experiment]:
        return sorted(self._api.list_experiments(prefix), key=lambda e: (e.created_ms, len(e.id), e.id))

    def delete_experiment(self, experiment: Experiment) -> None:
        with self._marks.writing(experiment.id):
            self._api.delete_experiment(experiment.id)

    def restore_experiment(self, name: str) -> None:
        found = self._api.find_experiment(name)
        if found is None or not found.deleted:
            raise InvalidInput(f"there is no deleted experiment '{name}' in {self.address}")
        self._api.restore_experiment(found.id)
        self._marks.take_away(found, writers(found))  # of whoever deleted it: MLflow let nobody take that mark away
        with self._marks.writing(found.id):  # MLflow restores runs that were deleted one by one, too
            pass

    def write_run(self, experiment: Experiment, draft: RunDraft) -> str:
        """Stores a whole run; until its last step the run is RUNNING and no reader takes it for a result."""
        with self._marks.writing(experiment.id):
            return self._write_run(experiment, draft)

    def _write_run(self, experiment: Experiment, draft: RunDraft) -> str:
        place = self._api.reserve_run(experiment)
        if place:
            self._api.insert_runs(experiment, [self._finished(place, draft)])
            return place[0]
        tags, params = _fitting(draft.tags), _fitting(draft.params)
        metrics = _metrics(draft.metrics, draft.ended_ms, step=0)
        name = printable(draft.name, 200)
        run_id, artifact_uri = self._api.create_run(experiment.id, name, draft.started_ms, tags)
        text_tags = self._write_texts(artifact_uri, draft.texts)
        self._log(run_id, metrics, params, text_tags)
        self._api.end_run(run_id, draft.status, draft.ended_ms)
        return run_id

    def write_runs(self, experiment: Experiment, drafts: Sequence[RunDraft]) -> None:
        """Stores whole runs, in one transaction where the store has a way for that."""
        finished = []
        with self.session():
            for draft in drafts:
                place = self._api.reserve_run(experiment)
                if place is None:
                    self.write_run(experiment, draft)
                else:
                    finished.append(self._finished(place, draft))
            if finished:
                with self._marks.writing(experiment.id):
                    self._api.insert_runs(experiment, finished)

    def _finished(self, place: tuple[str, str], draft: RunDraft) -> FinishedRun:
        run_id, artifact_uri = place
        tags, params = _fitting(draft.tags), _fitting(draft.params)
        metrics = _metrics(draft.metrics, draft.ended_ms, step=0)
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

    def extend_run(
        self,
        run: StoredRun,
        tags: Mapping[str, str],
        metrics: Mapping[str, float] | None = None,
        new_texts: Mapping[str, str] | None = None,
        at_ms: int = 0,
    ) -> None:
        """Adds to a run; a metric takes a step above its last one, or MLflow would go on showing the higher value."""
        with self._marks.writing(run.experiment_id):
            self._extend_run(run, tags, metrics, new_texts, at_ms)

    def _extend_run(
        self,
        run: StoredRun,
        tags: Mapping[str, str],
        metrics: Mapping[str, float] | None,
        new_texts: Mapping[str, str] | None,
        at_ms: int,
    ) -> None:
        plain_tags = _fitting(tags)
        stepped = [
            metric
            for key, value in (metrics or {}).items()
            for metric in _metrics({key: value}, at_ms, run.steps.get(key, -1) + 1)
        ]
        text_tags = self._write_texts(run.artifact_uri, new_texts or {})
        if text_tags and len(list(_pieces({**text_tags, **plain_tags}.items()))) > 1:
            self._log(run.run_id, (), {}, text_tags)  # what the plain tags speak of is there before them, and they
            text_tags = {}  # come in one piece
        self._log(run.run_id, stepped, {}, {**text_tags, **plain_tags})

    def extend_runs(self, changes: Sequence[RunChange], at_ms: int = 0) -> None:
        """Many runs; in one transaction where the store has a way for that."""
        with ExitStack() as stack:
            for experiment_id in sorted({change.run.experiment_id for change in changes}):
                stack.enter_context(self._marks.writing(experiment_id))  # before the transaction, so that it stands
            stack.enter_context(self._api.together())
            for change in changes:
                self.extend_run(change.run, change.tags, change.metrics, at_ms=at_ms)

    def tag_run(self, experiment: Experiment, run_id: str, tags: Mapping[str, str]) -> None:
        with self._marks.writing(experiment.id):
            self._api.log_batch(run_id, (), {}, _fitting(tags))

    def runs(self, experiment: Experiment, tags: Mapping[str, str]) -> list[StoredRun]:
        """The finished runs with these tags, oldest first."""
        return [run for run in self.every_run(experiment, tags) if run.status in DONE]

    def every_run(self, experiment: Experiment, tags: Mapping[str, str]) -> list[StoredRun]:
        """The runs with these tags, oldest first, also those that are being written or were left half-written."""
        return sorted(self.each_run(experiment, tags), key=lambda run: (run.started_ms, run.run_id))

    def each_run(self, experiment: Experiment, tags: Mapping[str, str], brief: bool = False) -> Iterator[StoredRun]:
        """The same one by one, as they are read; brief: for whoever reads no texts of them."""
        return self._api.search_runs(experiment.id, tags, brief)

    def remove_run(self, run: StoredRun) -> None:
        with self._marks.writing(run.experiment_id):
            self._api.delete_run(run.run_id)

    def text(self, run: StoredRun, name: str) -> str | None:
        """A text of the run, character for character; None when it has no such text."""
        note = texts.read_note(name, run.tags)
        if note is None:
            return None
        if note.kept_in == "tags":
            return texts.from_tags(name, note, run.tags)
        return texts.from_file(name, note, self._api.get_file(run.artifact_uri, name))

    def _write_texts(self, artifact_uri: str, named: Mapping[str, str]) -> dict[str, str]:
        """Writes the texts as files where that works; the tags that are still to be logged."""
        tags: dict[str, str] = {}
        if named and not self.files_refused and self._api.can_store_files(artifact_uri):
            files = {}
            for name, text in named.items():
                files[name], note = texts.as_file(name, text)
                tags.update(note)
            try:
                self._api.put_files(artifact_uri, files)
            except TrackingUnreachable:
                raise
            except TrackingError as error:  # a server without its artifact store
                self.files_refused = str(error)
            else:
                return tags
        for name, text in named.items():
            tags.update(texts.as_tags(name, text))
        return tags

    def _log(self, run_id: str, metrics: Sequence[Metric], params: Mapping[str, str], tags: Mapping[str, str]) -> None:
        pieces = list(_pieces(tags.items())) or [()]
        for number, piece in enumerate(pieces):
            first = number == 0
            self._api.log_batch(run_id, metrics if first else (), params if first else {}, dict(piece))

    def _not_deleted(self, experiment: Experiment) -> Experiment:
        if experiment.deleted:
            raise InvalidInput(
                f"experiment '{experiment.name}' was deleted and MLflow keeps its name; take another name, or bring "
                f"it back with 'tipbench experiments restore {experiment.name}'"
            )
        return experiment


def _metrics(values: Mapping[str, float], at_ms: int, step: int) -> list[Metric]:
    for key, value in values.items():
        if not math.isfinite(value):  # MLflow would store 0 and drop every metric after it
            raise TrackingError(f"the metric {key} is {value}, which MLflow can't hold")
    return [Metric(key, float(value), at_ms, step) for key, value in values.items()]


def _fitting(values: Mapping[str, str]) -> dict[str, str]:
    """Tags and params that MLflow holds whole; nothing that long is ever meant to be one."""
    for key, value in values.items():
        if len(value) > _LONGEST_VALUE:
            raise TrackingError(f"the value of {key} has {len(value)} characters; MLflow would cut it")
        if storable(value).escaped:  # in a file it would stay, PostgreSQL refuses it when half of the run is written
            raise TrackingError(f"the value of {key} is {shown(value)}, with a character that no database holds")
    return dict(values)


def _pieces(items: Iterable[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], ...]]:
    piece: list[tuple[str, str]] = []
    size = 0
    for key, value in items:
        cost = len(json.dumps(value, ensure_ascii=False).encode("utf-8")) + len(key) + 40
        if piece and (len(piece) >= _TAGS_A_BATCH or size + cost > _CHARS_A_BATCH):
            yield tuple(piece)
            piece, size = [], 0
        piece.append((key, value))
        size += cost
    if piece:
        yield tuple(piece)
