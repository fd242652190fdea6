"""The calls of Airflow's API that runs of our DAG need, in our own records."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from tipbench.airflow.remote.client import (
    AirflowApi,
    AirflowConflict,
    AirflowError,
    AirflowUnreachable,
    in_path,
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
    dag_run,
    log_part,
    question,
    task,
)
from tipbench.core.errors import InvalidInput, NotFound
from tipbench.core.untrusted import printable
from tipbench.server.jobs.interface import UnknownJob

_DAG = f"/dags/{DAG_ID}"
_RUNS = f"{_DAG}/dagRuns"
_PAGE = 100  # as many as Airflow gives at once


class Calls:
    """May be used from several threads."""

    def __init__(self, api: AirflowApi) -> None:
        self._api = api
        self.address = api.address

    def begin(self, run_id: str, conf: dict[str, Any]) -> None:
        """A reply that is lost on the way is asked for again; the id is ours, so that no second run comes of it."""
        try:
            self._post_run(run_id, conf)
        except AirflowUnreachable:
            self._post_run(run_id, conf)

    def run(self, run_id: str) -> DagRun:
        try:
            found = self._api.get(f"{_RUNS}/{in_path(run_id)}")
        except NotFound as error:
            raise UnknownJob(f"there is no job '{printable(run_id, 60)}' in the Airflow at {self.address}") from error
        with self._understood():
            return dag_run(found)

    def newest(self, limit: int, before_ms: int | None) -> list[DagRun]:
        before = {} if before_ms is None else {"run_after_lt": _moment(before_ms)}
        found: list[DagRun] = []
        while len(found) < limit:
            count = min(_PAGE, limit - len(found))
            try:
                page = self._api.get(_RUNS, limit=count, offset=len(found), order_by="-run_after", **before)
            except NotFound as error:
                raise self._no_dag() from error
            with self._understood():
                entries = page["dag_runs"]
                found += [dag_run(entry) for entry in entries]
            if len(entries) < count:
                break
        return found

    def tasks(self, run_id: str) -> list[Task]:
        return [found for _, found in self._tasks(f"{_RUNS}/{in_path(run_id)}/taskInstances")]

    def decisive(self, runs: Sequence[DagRun]) -> dict[str, list[Task]]:
        """Of runs that have failed: the tasks that failed, and `compare` where it was done, by the run's id."""
        moments = [run.created_ms for run in runs]
        window = {"run_after_gte": _moment(min(moments)), "run_after_lte": _moment(max(moments) + 1)}
        path = f"{_RUNS}/~/taskInstances"
        found: dict[str, list[Task]] = {run.id: [] for run in runs}
        for which in ({"state": "failed"}, {"state": "success", "task_id": COMPARE}):
            for run_id, one in self._tasks(path, **which, **window):
                if run_id in found:
                    found[run_id].append(one)
        return found

    def value(self, run_id: str, of: Task, key: str) -> Any:
        """What a task has told under this key; None before it has."""
        path = f"{_RUNS}/{in_path(run_id)}/taskInstances/{in_path(of.id)}/xcomEntries/{in_path(key)}"
        try:
            return self._api.get(path, map_index=of.map_index).get("value")
        except NotFound:
            return None

    def log(self, run_id: str, of: Task, token: str) -> LogPart:
        path = f"{_RUNS}/{in_path(run_id)}/taskInstances/{in_path(of.id)}/logs/{of.try_number}"
        after = {"token": token} if token else {}
        try:
            found = self._api.get(path, map_index=of.map_index, **after)
        except NotFound:
            return LogPart(())
        with self._understood():
            return log_part(found)

    def cancel(self, run_id: str) -> None:
        self._api.patch(f"{_RUNS}/{in_path(run_id)}", {"state": "failed", "note": CANCELLED})

    def is_paused(self) -> bool:
        return self._api.get(_DAG).get("is_paused") is True

    def defaults(self) -> dict[str, Any]:
        """What runs do that are not told otherwise, by the DAG's file."""
        params = self._api.get(f"{_DAG}/details").get("params")
        found = params if isinstance(params, dict) else {}
        return {str(key): one["value"] for key, one in found.items() if isinstance(one, dict) and "value" in one}

    def questions(self) -> list[Question]:
        """Runs in which somebody's scores are waited for."""
        asked = {"task_id": WAIT, "state": "awaiting_input", "response_received": "false", "limit": _PAGE}
        found = self._api.get(f"{_RUNS}/~/hitlDetails", **asked)
        with self._understood():
            return [question(entry) for entry in found["hitl_details"]]

    def answer(self, run_id: str) -> None:
        path = f"{_RUNS}/{in_path(run_id)}/taskInstances/{WAIT}/-1/hitlDetails"
        self._api.patch(path, {"chosen_options": [APPLIED], "params_input": {"scores": ""}})

    def close(self) -> None:
        self._api.close()

    def _post_run(self, run_id: str, conf: dict[str, Any]) -> None:
        try:
            self._api.post(_RUNS, {"dag_run_id": run_id, "logical_date": None, "conf": conf})
        except AirflowConflict:
            return  # it is there
        except NotFound as error:
            raise InvalidInput(str(self._no_dag())) from error

    def _tasks(self, path: str, **which: Any) -> Iterator[tuple[str, Task]]:
        offset = 0
        while True:
            page = self._api.get(path, limit=_PAGE, offset=offset, **which)
            with self._understood():
                entries = page["task_instances"]
                found = [(str(entry["dag_run_id"]), task(entry)) for entry in entries]
            yield from found
            offset += len(found)
            if len(found) < _PAGE:
                return

    def _no_dag(self) -> AirflowError:
        return AirflowError(f"the Airflow at {self.address} has no DAG {DAG_ID}; run 'tipbench airflow init' there")

    @contextmanager
    def _understood(self) -> Iterator[None]:
        """Other versions of Airflow, and servers that are none, have answers of their own."""
        try:
            yield
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise AirflowError(
                f"the Airflow at {self.address} tells about runs in a way that is not known here "
                f"({type(error).__name__}: {printable(str(error), 100)}); Airflow 3.3 was tested"
            ) from error


def _moment(ms: int) -> str:
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        raise InvalidInput(f"{ms} is no moment that runs can be looked for before") from None
