"""A real Airflow for tests: api-server, scheduler and dag-processor, in the environment that `make airflow` makes.

with AirflowServer.start(folder, dag_file, environment) as airflow:
    run = airflow.trigger({"models": "scripted/a"})
    airflow.until(run, "success")
"""

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import httpx

from tests.user_cache import built_once, cache_folder

VENV = Path(__file__).parents[2] / ".venv-airflow"
DAG = "bench_collect"
USER, PASSWORD = "bench", "a-password-for-tests-only"
SERVICES = ("api-server", "scheduler", "dag-processor")
_PATIENCE_S = 120.0
_RACE_S = 5.0
_ENDED = ("success", "failed")


class Task(NamedTuple):
    """One task instance."""

    id: str
    map_index: int
    state: str | None
    tries: int
    model: str | None
    pool: str
    started: str | None
    ended: str | None


class AirflowServer:
    """Leave the `with` block to end it, with all that it started."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        self.folder = folder
        self._client = httpx.Client(base_url=self.url, timeout=30, trust_env=False)
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._groups: list[int] = []
        passwords = folder / "passwords.json"
        passwords.write_text(json.dumps({USER: PASSWORD}))
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "TIPBENCH"))},
            **environment,
            "PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "AIRFLOW_HOME": str(folder),
            "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PARALLELISM": "4",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": self.url.rpartition(":")[2],
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API_AUTH__JWT_SECRET": "a-secret-for-tests-only-that-is-long-enough-for-sha512-signatures",
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2",
            "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "5",
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "15",
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "3",
        }

    @classmethod
    def start(cls, folder: Path, dag_file: str, environment: Mapping[str, str]) -> "AirflowServer":
        """`environment`: what workers have, such as MLFLOW_TRACKING_URI."""
        server = cls(folder, environment)
        (folder / "dags").mkdir()
        (folder / "dags" / "bench_collect.py").write_text(dag_file)
        server.make_database()
        try:
            for service in SERVICES:
                server.bring_up(service)
            server.wait(lambda: server.health() == {"scheduler": "healthy", "dag_processor": "healthy"}, "healthy")
        except BaseException:
            server.stop()
            raise
        return server

    def __enter__(self) -> "AirflowServer":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.stop()

    @property
    def for_tipbench(self) -> dict[str, str]:
        """The settings by which tipbench finds this Airflow."""
        return {
            "TIPBENCH_AIRFLOW_URL": self.url,
            "TIPBENCH_AIRFLOW_USERNAME": USER,
            "TIPBENCH_AIRFLOW_PASSWORD": PASSWORD,
            "AIRFLOW_HOME": str(self.folder),
        }

    def command(self, *arguments: str) -> str:
        """Airflow's own command line."""
        done = subprocess.run(
            [str(VENV / "bin" / "airflow"), *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def make_database(self) -> None:
        """Airflow takes 12 s to make its tables: a copy of those that it made once for this version."""
        version = hashlib.sha256((VENV / "pyvenv.cfg").read_bytes())
        version.update((VENV.parent / "requirements-airflow.lock").read_bytes())
        made = built_once(cache_folder("test-airflow"), f"database-{version.hexdigest()[:12]}", self._migrate)
        shutil.copyfile(made / "airflow.db", self.folder / "airflow.db")

    def _migrate(self, folder: Path) -> None:
        self.command("db", "migrate")
        shutil.copyfile(self.folder / "airflow.db", folder / "airflow.db")

    def bring_up(self, service: str) -> None:
        with (self.folder / f"{service}.log").open("ab") as log:
            self._running[service] = subprocess.Popen(
                [str(VENV / "bin" / "airflow"), service],
                env=self.environment,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._groups.append(self._running[service].pid)

    def kill(self, service: str) -> None:
        """The service alone and at once; what it started is left to itself."""
        process = self._running.pop(service)
        process.kill()
        process.wait()

    def stop(self) -> None:
        """Everything, also what a killed service left: each was started in a process group of its own."""
        self._client.close()
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(3)
        for group in self._groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        for process in self._running.values():
            process.wait()

    def health(self) -> dict[str, str]:
        try:
            told = httpx.get(f"{self.url}/api/v2/monitor/health", timeout=10, trust_env=False).json()
        except httpx.HTTPError:
            return {}
        return {name: told[name]["status"] for name in ("scheduler", "dag_processor")}

    def api(self, method: str, path: str, body: Any = None, **params: Any) -> Any:
        answer = self.ask(method, path, body, **params)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def ask(self, method: str, path: str, body: Any = None, **params: Any) -> httpx.Response:
        if "Authorization" not in self._client.headers:
            login = self._client.post("/auth/token", json={"username": USER, "password": PASSWORD})
            self._client.headers["Authorization"] = f"Bearer {login.json()['access_token']}"
        return self._client.request(method, f"/api/v2{path}", json=body, params=params)

    def trigger(self, conf: Mapping[str, Any]) -> str:
        """Start a run over REST; returns its id. `airflow dags trigger` does the same and takes seconds to start."""
        run = uuid.uuid4().hex
        self.api("POST", f"/dags/{DAG}/dagRuns", {"dag_run_id": run, "logical_date": None, "conf": conf})
        return run

    def state(self, run: str) -> str:
        return str(self.api("GET", f"/dags/{DAG}/dagRuns/{run}")["state"])

    def tasks(self, run: str, task_id: str = "") -> list[Task]:
        found = self.api("GET", f"/dags/{DAG}/dagRuns/{run}/taskInstances", limit=100)["task_instances"]
        keys = ("task_id", "map_index", "state", "try_number", "rendered_map_index", "pool", "start_date", "end_date")
        return [Task(*(one[key] for key in keys)) for one in found if task_id in ("", one["task_id"])]

    def states(self, run: str) -> dict[str, str | None]:
        return {f"{task.id}[{task.model}]" if task.map_index >= 0 else task.id: task.state for task in self.tasks(run)}

    def xcom(self, run: str, task_id: str, key: str = "return_value", map_index: int = -1) -> Any:
        path = f"/dags/{DAG}/dagRuns/{run}/taskInstances/{task_id}/xcomEntries/{key}"
        return self.api("GET", path, map_index=map_index)["value"]

    def log(self, run: str, task_id: str) -> str:
        """Of its current try."""
        tries = self.tasks(run, task_id)[0].tries
        return self.ask("GET", f"/dags/{DAG}/dagRuns/{run}/taskInstances/{task_id}/logs/{tries}").text

    def clear(self, run: str, *tasks: str | list[Any]) -> None:
        """Has these tasks run again, and all that follow; a mapped one is [task, map index]."""
        body = {
            "dry_run": False,
            "dag_run_id": run,
            "task_ids": list(tasks),
            "only_failed": False,
            "include_downstream": True,
            "reset_dag_runs": True,
        }
        self.api("POST", f"/dags/{DAG}/clearTaskInstances", body)

    def answer(self, run: str, option: str, scores: str, came_of_it: Callable[[], bool]) -> None:
        """Until something came of it: of an answer that comes soon after the asking, Airflow may lose all but the fact
        that it came; the task then asks again."""
        path = f"/dags/{DAG}/dagRuns/{run}/taskInstances/wait_for_judge"
        while True:
            self.wait(lambda: came_of_it() or self._asks(run), "waiting for a judge")
            if came_of_it():  # perhaps of the last answer, only now
                return
            time.sleep(_RACE_S)
            tries = self.tasks(run, "wait_for_judge")[0].tries
            self.api(
                "PATCH", f"{path}/-1/hitlDetails", {"chosen_options": [option], "params_input": {"scores": scores}}
            )
            self.wait(partial(self._went_on, run, tries, came_of_it), "answered")

    def _asks(self, run: str) -> bool:
        return self.tasks(run, "wait_for_judge")[0].state == "awaiting_input"

    def _went_on(self, run: str, tries: int, came_of_it: Callable[[], bool]) -> bool:
        return came_of_it() or self.tasks(run, "wait_for_judge")[0].tries > tries

    def question(self, run: str) -> Any:
        """What the run asks a person, as Airflow's form has it."""
        return self.api("GET", f"/dags/{DAG}/dagRuns/{run}/taskInstances/wait_for_judge/-1/hitlDetails")

    def until(self, run: str, state: str) -> None:
        """Until the run has ended, which must be in this state."""
        self.wait(lambda: self.state(run) in _ENDED, f"{run} at its end")
        assert self.state(run) == state, (self.states(run), self.problems(run))

    def until_task(self, run: str, task_id: str, *states: str) -> None:
        def there() -> bool:
            found = self.tasks(run, task_id)
            assert self.state(run) not in _ENDED or all(task.state in states for task in found), self.problems(run)
            return any(task.state in states for task in found)

        self.wait(there, f"{task_id} of {run} as {states}")

    def problems(self, run: str) -> list[str]:
        """What the tasks that failed have said."""
        found = []
        for task in self.tasks(run):
            path = f"/dags/{DAG}/dagRuns/{run}/taskInstances/{task.id}/xcomEntries/problem"
            answer = self.ask("GET", path, map_index=task.map_index)
            if task.state == "failed" and answer.is_success:
                found.append(answer.json()["value"])
        return found

    def wait(self, there: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + _PATIENCE_S
        while not there():
            if time.monotonic() > until:
                logs = "\n".join((self.folder / f"{name}.log").read_text()[-2000:] for name in SERVICES)
                raise AssertionError(f"Airflow was not {what} within {_PATIENCE_S:g} s:\n{logs}")
            time.sleep(0.5)
