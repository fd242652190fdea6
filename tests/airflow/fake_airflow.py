"""An Airflow with faults on purpose: it has the pools, the DAG and the errors that a test gives it."""

import json
from dataclasses import dataclass, field
from typing import Any

import httpx

from tipbench.airflow.remote.client import AirflowApi
from tipbench.core.settings import Settings

ADDRESS = "http://airflow.example:8080"
ENVIRONMENT = {
    "TIPBENCH_AIRFLOW_URL": ADDRESS,
    "TIPBENCH_AIRFLOW_USERNAME": "admin",
    "TIPBENCH_AIRFLOW_PASSWORD": "s3cret",
}
DAG = {"dag_id": "bench_collect", "is_paused": False, "is_stale": False, "fileloc": "/dags/bench_collect.py"}


@dataclass
class FakeAirflow:
    version: Any = "3.3.2"
    health: dict[str, Any] = field(
        default_factory=lambda: {"scheduler": {"status": "healthy"}, "dag_processor": {"status": "healthy"}}
    )
    pools: dict[str, int] = field(default_factory=dict)
    dag: dict[str, Any] | None = None
    dag_pools: list[str] = field(default_factory=list)  # of its collecting tasks
    errors: Any = field(default_factory=list)
    instead: httpx.Response | Exception | None = None  # what every request gets
    changes: list[str] = field(default_factory=list)

    def api(self) -> AirflowApi:
        return AirflowApi(Settings(ENVIRONMENT), httpx.MockTransport(self.answer))

    def answer(self, request: httpx.Request) -> httpx.Response:
        if isinstance(self.instead, Exception):
            raise self.instead
        if self.instead is not None:
            return self.instead
        path = request.url.path
        if path == "/auth/token":
            return httpx.Response(201, json={"access_token": "abc"})
        path = path.removeprefix("/api/v2")
        if request.method != "GET":
            return self._changed(request.method, path, json.loads(request.content))
        tasks = [{"task_id": "plan", "pool": "default_pool"}] + [
            {"task_id": "collect" if not number else f"collect_{number}", "pool": pool}
            for number, pool in enumerate(self.dag_pools)
        ]
        found = {
            "/version": {"version": self.version} if self.version else None,
            "/monitor/health": self.health,
            "/dags/bench_collect": self.dag,
            "/dags/bench_collect/tasks": {"tasks": tasks} if self.dag else None,
            "/importErrors": {"import_errors": self.errors},
            **{f"/pools/{name}": {"name": name, "slots": slots} for name, slots in self.pools.items()},
        }.get(path)
        return httpx.Response(200, json=found) if found else httpx.Response(404, json={"detail": "was not found"})

    def _changed(self, method: str, path: str, body: dict[str, Any]) -> httpx.Response:
        self.changes.append(f"{method} {path} {body['slots']}")
        self.pools[body["name"] if method == "POST" else body["pool"]] = body["slots"]
        return httpx.Response(201 if method == "POST" else 200, json=body)
