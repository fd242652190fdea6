"""An MLflow as a server is one, in process: runs are written in several steps, and other hosts may write too.

It notes what it is asked for, and that no run is touched without its writer's mark on the experiment.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tipbench.bench.tracking.embedded import EmbeddedMlflow
from tipbench.bench.tracking.interface import Addition, Experiment, Metric, Names, RunStatus, StoredRun
from tipbench.bench.tracking.write_markers import writers
from tipbench.core.errors import TrackingError


class SharedMlflow(EmbeddedMlflow):
    is_shared = True

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.searches = 0
        self.marks_set = 0
        self.writes = 0
        self.error: BaseException | None = None  # of every write
        self.refuses_marks = False
        self.during_search: Callable[[], None] = lambda: None
        self.shuffle: random.Random | None = None

    def search_runs(
        self,
        experiment_id: str,
        tags: Mapping[str, str],
        omit: Sequence[str] = (),
        run_ids: Sequence[str] = (),
        only: Names | None = None,
        newest_first: bool = False,
    ) -> Iterator[StoredRun]:
        self.searches += 1
        found = list(super().search_runs(experiment_id, tags, omit, run_ids, only, newest_first))
        if self.shuffle and not newest_first:
            self.shuffle.shuffle(found)
        self.during_search()
        return iter(found)

    def tag_experiment(self, experiment_id: str, key: str, value: str, timeout_s: float | None = None) -> None:
        if self.refuses_marks:
            raise TrackingError("read only")
        self.marks_set += 1
        super().tag_experiment(experiment_id, key, value, timeout_s)

    def create_run(self, experiment_id: str, name: str, started_ms: int, tags: Mapping[str, str]) -> tuple[str, str]:
        self._write()
        return super().create_run(experiment_id, name, started_ms, tags)

    def log_batch(
        self, run_id: str, metrics: Sequence[Metric], params: Mapping[str, str], tags: Mapping[str, str]
    ) -> None:
        self._write()
        super().log_batch(run_id, metrics, params, tags)

    def end_run(self, run_id: str, status: RunStatus, ended_ms: int) -> None:
        self._write()
        super().end_run(run_id, status, ended_ms)

    def delete_run(self, run_id: str) -> None:
        self._write()
        super().delete_run(run_id)

    def delete_experiment(self, experiment_id: str) -> None:
        self._write()
        super().delete_experiment(experiment_id)

    def reserve_run(self, experiment: Experiment) -> tuple[str, str] | None:
        return None

    def extend_runs(self, additions: Iterable[Addition]) -> bool:
        return False

    def _write(self) -> None:
        self.writes += 1
        assert any(writers(experiment) for experiment in self.list_experiments("")), "a write without a mark"
        if self.error:
            raise self.error
