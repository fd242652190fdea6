"""An Airflow of the test's making: answers in the shapes that 3.3.2 gave, so that any state and fault can be had."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import httpx

from tipbench.airflow.remote.calls import DagClient
from tipbench.airflow.remote.client import AirflowApi
from tipbench.core.settings import Settings

USER, PASSWORD, TOKEN = "bench", "pass-hunter2", "token-hunter3"
ACCESS = {
    "TIPBENCH_AIRFLOW_URL": "http://air:8080",
    "TIPBENCH_AIRFLOW_USERNAME": USER,
    "TIPBENCH_AIRFLOW_PASSWORD": PASSWORD,
}
NOW_S = 1_794_775_000.0
_RUNS = "/api/v2/dags/bench_collect/dagRuns"

Fault = Callable[[httpx.Request], httpx.Response | None]


def moment(seconds: float) -> str:
    """Relative to NOW_S, as Airflow writes it."""
    return datetime.fromtimestamp(NOW_S + seconds, UTC).isoformat().replace("+00:00", "Z")


def a_task(task_id: str, state: str | None = "success", map_index: int = -1, **more: Any) -> dict[str, Any]:
    begun = state not in (None, "scheduled", "queued", "upstream_failed")
    return {
        "task_id": task_id,
        "dag_id": "bench_collect",
        "map_index": map_index,
        "start_date": moment(0) if begun else None,
        "end_date": moment(10) if state in ("success", "failed", "skipped") else None,
        "state": state,
        "try_number": 1 if begun else 0,
        "hostname": "worker1" if begun else "",
        "pool": "ollama_h_1" if task_id.startswith("collect") else "default_pool",
        "rendered_map_index": None if map_index < 0 else str(map_index),
        **more,
    }


def story(**states: str | None) -> list[dict[str, Any]]:
    """All tasks that are not mapped, not begun unless a state is given."""
    names = ("plan", "export_for_judge", "judge", "wait_for_judge", "compare", "complete")
    return [a_task(name, states.get(name)) for name in names]


def planned(*models: str, to_do: int = 4, stored: int = 0, mlflow_url: str | None = None) -> dict[str, Any]:
    return {
        "experiment": "tip-bench-auto",
        "suite": "tip",
        "mlflow_url": mlflow_url,
        "cells": to_do * len(models) + stored,
        "stored": stored,
        "to_do": to_do * len(models),
        "models": [
            {"model": name, "ollama_url": "http://h:1", "cells": to_do, "to_do": to_do, "task_id": "collect"}
            for name in models
        ],
    }


def told(model: str, done: int, failures: Sequence[Mapping[str, str]] = (), **more: Any) -> dict[str, Any]:
    """What a collect task says while it goes."""
    counts = {"cells": 4, "stored": 0, "done": done, "failed": len(failures), "empty": 0}
    return {"model": model, **counts, "current": f"{model} × v1", "failures": list(failures), **more}


def exported(batch: str | None = "b1", items: int = 8, experiment: str = "tip-bench-auto") -> dict[str, Any]:
    where = {"experiment": experiment, "batch": batch, "run_id": "r1", "judge": "person", "items": items}
    return {**where, "uri": "mlflow-artifacts:/1/r1/artifacts", "link": "http://mlflow:5000/#/experiments/1/runs/r1"}


class StandIn:
    """Holds what it is told, keeps what it is asked; `fault` may answer before it does."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []
        self.runs: dict[str, dict[str, Any]] = {}
        self.tasks: dict[str, list[dict[str, Any]]] = {}
        self.values: dict[tuple[str, str, int, str], Any] = {}
        self.logs: dict[tuple[str, str, int, int], list[dict[str, Any]]] = {}
        self.questions: list[dict[str, Any]] = []
        self.answered: dict[str, Any] = {}
        self.is_paused = False
        self.defaults: dict[str, Any] = {}
        self.tokens = 0
        self.fault: Fault | None = None

    def api(self, **environment: str) -> AirflowApi:
        return AirflowApi(Settings(ACCESS | environment), httpx.MockTransport(self._answer))

    def calls(self) -> DagClient:
        return DagClient(self.api())

    def add(
        self,
        run_id: str = "r1",
        state: str = "running",
        *tasks: dict[str, Any],
        created_s: float = 0.0,
        note: str | None = None,
        **conf: Any,
    ) -> None:
        self.runs[run_id] = {
            "dag_run_id": run_id,
            "dag_id": "bench_collect",
            "logical_date": None,
            "run_after": moment(created_s),
            "start_date": None if state == "queued" else moment(created_s),
            "end_date": moment(created_s + 60) if state in ("success", "failed") else None,
            "state": state,
            "conf": conf,
            "note": note,
        }
        self.tasks[run_id] = [{**task, "dag_run_id": run_id} for task in tasks]

    def tell(self, task_id: str, key: str, value: Any, map_index: int = -1, run_id: str = "r1") -> None:
        self.values[run_id, task_id, map_index, key] = value

    def paths(self) -> list[str]:
        """What was asked, without logging in, since the last time; below the DAG's runs."""
        found = [f"{r.method} {r.url.path.removeprefix(_RUNS)}" for r in self.requests if r.url.path != "/auth/token"]
        self.requests.clear()
        return found

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.fault(request) if self.fault else None
        if answer is not None:
            return answer
        path = request.url.raw_path.decode().partition("?")[0]
        if path == "/auth/token":
            return self._log_in(json.loads(request.content))
        if not request.headers.get("Authorization", "").startswith("Bearer t"):
            return httpx.Response(401, json={"detail": "Not authenticated"})
        if path == "/api/v2/dags/bench_collect/details":
            return httpx.Response(200, json={"params": {key: {"value": one} for key, one in self.defaults.items()}})
        if path == "/api/v2/dags/bench_collect":
            return httpx.Response(200, json={"dag_id": "bench_collect", "is_paused": self.is_paused})
        if not path.startswith(_RUNS):
            return httpx.Response(404, json={"detail": "The Dag with ID: `x` was not found"})
        parts = [unquote(part) for part in path.removeprefix(_RUNS).split("/")[1:]]
        return self._below(request, parts)

    def _log_in(self, body: Mapping[str, str]) -> httpx.Response:
        if body != {"username": USER, "password": PASSWORD}:
            return httpx.Response(401, json={"detail": "Invalid credentials"})
        self.tokens += 1
        return httpx.Response(201, json={"access_token": f"token-{self.tokens}"})

    def _below(self, request: httpx.Request, parts: Sequence[str]) -> httpx.Response:
        query = request.url.params
        match request.method, *parts:
            case ["POST"]:
                return self._begin(json.loads(request.content))
            case ["GET"]:
                return self._listed(query)
            case ["GET", "~", "hitlDetails"]:
                return httpx.Response(200, json={"hitl_details": self.questions, "total_entries": len(self.questions)})
            case ["GET", "~", "taskInstances"]:
                found = [one for tasks in self.tasks.values() for one in tasks if one["state"] == query["state"]]
                return self._task_page([one for one in found if query.get("task_id") in (None, one["task_id"])], query)
            case [_, run_id, *_] if run_id not in self.runs:
                return httpx.Response(404, json={"detail": f"The DagRun with run_id: `{run_id}` was not found"})
            case ["GET", run_id]:
                return httpx.Response(200, json=self.runs[run_id])
            case ["PATCH", run_id]:
                self.runs[run_id] |= json.loads(request.content)
                return httpx.Response(200, json=self.runs[run_id])
            case ["GET", run_id, "taskInstances"]:
                return self._task_page(self.tasks[run_id], query)
            case ["GET", run_id, "taskInstances", task_id, "xcomEntries", key]:
                at = (run_id, task_id, int(query["map_index"]), key)
                if at not in self.values:
                    return httpx.Response(404, json={"detail": f"XCom entry with key: `{key}` not found"})
                return httpx.Response(200, json={"key": key, "task_id": task_id, "value": self.values[at]})
            case ["GET", run_id, "taskInstances", task_id, "logs", tried]:
                return self._log((run_id, task_id, int(query["map_index"]), int(tried)), query.get("token"))
            case ["PATCH", run_id, "taskInstances", "wait_for_judge", "-1", "hitlDetails"]:
                self.questions = [one for one in self.questions if one["task_instance"]["dag_run_id"] != run_id]
                self.answered[run_id] = json.loads(request.content)
                return httpx.Response(200, json=self.answered[run_id])
        return httpx.Response(404, json={"error": "API route not found"})

    def _begin(self, body: Mapping[str, Any]) -> httpx.Response:
        if body["dag_run_id"] in self.runs:
            return httpx.Response(409, json={"detail": {"reason": "Unique constraint violation"}})
        self.add(body["dag_run_id"], "queued", *story(), **body["conf"])
        return httpx.Response(200, json=self.runs[body["dag_run_id"]])

    def _listed(self, query: httpx.QueryParams) -> httpx.Response:
        assert query["order_by"] == "-run_after"
        found = sorted(self.runs.values(), key=lambda run: datetime.fromisoformat(run["run_after"]), reverse=True)
        if "run_after_lt" in query:
            before = datetime.fromisoformat(query["run_after_lt"])
            found = [run for run in found if datetime.fromisoformat(run["run_after"]) < before]
        page = found[int(query["offset"]) :][: int(query["limit"])]
        return httpx.Response(200, json={"dag_runs": page, "total_entries": len(found)})

    def _task_page(self, found: Sequence[dict[str, Any]], query: httpx.QueryParams) -> httpx.Response:
        page = found[int(query["offset"]) :][: int(query["limit"])]
        return httpx.Response(200, json={"task_instances": page, "total_entries": len(found)})

    def _log(self, at: tuple[str, str, int, int], token: str | None) -> httpx.Response:
        """While a task runs there is a token, by which the next one who asks gets what is new."""
        events = self.logs.get(at, [])
        run_id, task_id, map_index, _ = at
        states = [
            one["state"] for one in self.tasks[run_id] if (one["task_id"], one["map_index"]) == (task_id, map_index)
        ]
        more = f"from-{len(events)}" if states == ["running"] else None
        begin = int(token.removeprefix("from-")) if token else 0
        return httpx.Response(200, json={"content": events[begin:], "continuation_token": more})
