"""The calls of Airflow's API that concern runs of our DAG, with results as our own records."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from tipbench.airflow.remote.client import (
    AirflowApi,
    AirflowConflict,
    AirflowError,
    AirflowUnreachable,
    path_segment,
)
from tipbench.airflow.remote.records import (
    APPLIED,
    CANCELLED,
    COMPARE,
    DAG_ID,
    WAIT,
    DagRun,
    LogPart,
    Question,
    Task,
    parse_dag_run,
    parse_log_part,
    parse_question,
    parse_task,
)
from tipbench.core.errors import InvalidInput, NotFound
from tipbench.core.untrusted import printable
from tipbench.server.jobs.interface import UnknownJob

_DAG = f"/dags/{DAG_ID}"
_RUNS = f"{_DAG}/dagRuns"
_PAGE_SIZE = 100  # the most that Airflow returns at once


class DagClient:
    """Calls Airflow's API for the runs of our DAG. Thread-safe."""

    def __init__(self, api: AirflowApi) -> None:
        self._api = api
        self.address = api.address

    def start_run(self, run_id: str, conf: dict[str, Any]) -> None:
        """Start a run. Retried once if there is no reply; the id is ours, so that this can't start a second run."""
        try:
            self._post_run(run_id, conf)
        except AirflowUnreachable:
            self._post_run(run_id, conf)

    def run(self, run_id: str) -> DagRun:
        """Return a run; raise UnknownJob if there is none of this id."""
        try:
            found = self._api.get(f"{_RUNS}/{path_segment(run_id)}")
        except NotFound as error:
            raise UnknownJob(f"there is no job '{printable(run_id, 60)}' in the Airflow at {self.address}") from error
        with self._parsing():
            return parse_dag_run(found)

    def newest_runs(self, limit: int, before_ms: int | None) -> list[DagRun]:
        """Return the newest runs, the newest first, page by page."""
        before = {} if before_ms is None else {"run_after_lt": _timestamp(before_ms)}
        found: list[DagRun] = []
        while len(found) < limit:
            count = min(_PAGE_SIZE, limit - len(found))
            try:
                page = self._api.get(_RUNS, limit=count, offset=len(found), order_by="-run_after", **before)
            except NotFound as error:
                raise self._dag_missing() from error
            with self._parsing():
                entries = page["dag_runs"]
                found += [parse_dag_run(entry) for entry in entries]
            if len(entries) < count:
                break
        return found

    def tasks(self, run_id: str) -> list[Task]:
        return [found for _, found in self._tasks(f"{_RUNS}/{path_segment(run_id)}/taskInstances")]

    def decisive_tasks(self, runs: Sequence[DagRun]) -> dict[str, list[Task]]:
        """Return the failed tasks of runs, and `compare` if it succeeded, by run id."""
        created_ms = [run.created_ms for run in runs]
        window = {"run_after_gte": _timestamp(min(created_ms)), "run_after_lte": _timestamp(max(created_ms) + 1)}
        path = f"{_RUNS}/~/taskInstances"
        found: dict[str, list[Task]] = {run.id: [] for run in runs}
        for filters in ({"state": "failed"}, {"state": "success", "task_id": COMPARE}):
            for run_id, one in self._tasks(path, **filters, **window):
                if run_id in found:
                    found[run_id].append(one)
        return found

    def xcom(self, run_id: str, task: Task, key: str) -> Any:
        """Return the XCom that a task has pushed under this key; None if it has not."""
        path = f"{_RUNS}/{path_segment(run_id)}/taskInstances/{path_segment(task.id)}/xcomEntries/{path_segment(key)}"
        try:
            return self._api.get(path, map_index=task.map_index).get("value")
        except NotFound:
            return None

    def log(self, run_id: str, task: Task, token: str) -> LogPart:
        """Return what a task has logged since the call that returned this token; everything if it is empty."""
        path = f"{_RUNS}/{path_segment(run_id)}/taskInstances/{path_segment(task.id)}/logs/{task.try_number}"
        after = {"token": token} if token else {}
        try:
            found = self._api.get(path, map_index=task.map_index, **after)
        except NotFound:
            return LogPart(())
        with self._parsing():
            return parse_log_part(found)

    def cancel(self, run_id: str) -> None:
        self._api.patch(f"{_RUNS}/{path_segment(run_id)}", {"state": "failed", "note": CANCELLED})

    def is_paused(self) -> bool:
        return self._api.get(_DAG).get("is_paused") is True

    def defaults(self) -> dict[str, Any]:
        """Return the default options of runs, as set in the DAG's file."""
        params = self._api.get(f"{_DAG}/details").get("params")
        found = params if isinstance(params, dict) else {}
        return {str(key): one["value"] for key, one in found.items() if isinstance(one, dict) and "value" in one}

    def questions(self) -> list[Question]:
        """Return the open questions of runs that wait for scores."""
        filters = {"task_id": WAIT, "state": "awaiting_input", "response_received": "false", "limit": _PAGE_SIZE}
        found = self._api.get(f"{_RUNS}/~/hitlDetails", **filters)
        with self._parsing():
            return [parse_question(entry) for entry in found["hitl_details"]]

    def answer(self, run_id: str) -> None:
        path = f"{_RUNS}/{path_segment(run_id)}/taskInstances/{WAIT}/-1/hitlDetails"
        self._api.patch(path, {"chosen_options": [APPLIED], "params_input": {"scores": ""}})

    def close(self) -> None:
        self._api.close()

    def _post_run(self, run_id: str, conf: dict[str, Any]) -> None:
        try:
            self._api.post(_RUNS, {"dag_run_id": run_id, "logical_date": None, "conf": conf})
        except AirflowConflict:
            return  # it exists already
        except NotFound as error:
            raise InvalidInput(str(self._dag_missing())) from error

    def _tasks(self, path: str, **filters: Any) -> Iterator[tuple[str, Task]]:
        offset = 0
        while True:
            page = self._api.get(path, limit=_PAGE_SIZE, offset=offset, **filters)
            with self._parsing():
                entries = page["task_instances"]
                found = [(str(entry["dag_run_id"]), parse_task(entry)) for entry in entries]
            yield from found
            offset += len(found)
            if len(found) < _PAGE_SIZE:
                return

    def _dag_missing(self) -> AirflowError:
        return AirflowError(f"the Airflow at {self.address} has no DAG {DAG_ID}; run 'tipbench airflow init' there")

    @contextmanager
    def _parsing(self) -> Iterator[None]:
        """Raise AirflowError for responses of another shape, as from another version or from no Airflow at all."""
        try:
            yield
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise AirflowError(
                f"the Airflow at {self.address} describes runs in an unknown way ({type(error).__name__}: "
                f"{printable(str(error), 100)}); tested with Airflow 3.3"
            ) from error


def _timestamp(ms: int) -> str:
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        raise InvalidInput(f"{ms} is not a valid time to list runs before") from None
