"""MLflow's server as a child process on a unix socket, in a folder that only its owner can enter."""

import asyncio
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import httpx

from tipbench.bench.tracking.embedded import SCHEME, artifacts_folder
from tipbench.core.errors import TrackingError
from tipbench.core.files import make_private_folder
from tipbench.core.processes import module_command, start_process
from tipbench.core.untrusted import printable

HOST = "localhost"  # accepted by MLflow's host check
_START_S = 120.0
_STOP_S = 5.0
_ANSWER_S = 300.0  # MLflow takes half a minute to search ten thousand runs
_PROBE = "/api/2.0/mlflow/experiments/get?experiment_id=0"  # opens the database, unlike /health


class ServerProcess:
    """Starts the server on construction; it and its socket are gone after `stop`, or however this process ends."""

    def __init__(self, database: Path, log: Path, environment: Mapping[str, str]) -> None:
        self._database = database
        self._log = log
        self._folder = Path(tempfile.mkdtemp(prefix="tipbench-"))  # short: a socket's path is limited to 107 bytes
        socket = self._folder / "mlflow.sock"
        make_private_folder(log.parent)
        command = module_command("tipbench.server.mlflow_pages.server_main", str(socket))
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            self._process = start_process(
                command,
                stdin=subprocess.PIPE,  # its end tells the child that this process is gone
                stdout=out,
                stderr=out,
                environment=_environment(database, environment),
            )
        finally:
            os.close(out)
        self.client = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=str(socket), limits=httpx.Limits(keepalive_expiry=30)),
            base_url=f"http://{HOST}",
            timeout=httpx.Timeout(_ANSWER_S, connect=5.0),
            trust_env=False,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    async def wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_S
        while self.is_alive and time.monotonic() < deadline:
            try:
                answer = await self.client.get(_PROBE)
            except httpx.TransportError:
                await asyncio.sleep(0.1)
                continue
            if answer.is_server_error:
                raise TrackingError(f"MLflow can't show {self._database}: {_error_message(answer)}")
            return
        how = (
            f"did not answer within {_START_S:g} s"
            if self.is_alive
            else f"ended with status {self._process.returncode}"
        )
        raise TrackingError(f"MLflow's server {how}: {self._last_log_line()}; its log is {self._log}")

    async def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.to_thread(self._process.wait, _STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)
        finally:  # also when this task is cancelled
            await self.client.aclose()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _last_log_line(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return printable(lines[-1], 300) if lines else "it printed nothing"


def _environment(database: Path, ours: Mapping[str, str]) -> dict[str, str]:
    """Return our environment with what `mlflow server` sets for its workers, without other MLflow variables."""
    environment = {name: value for name, value in ours.items() if not name.startswith(("MLFLOW_", "_MLFLOW_"))}
    return environment | {
        "_MLFLOW_SERVER_FILE_STORE": f"{SCHEME}{database}",  # MLflow itself waits 20 s for other writers
        "_MLFLOW_SERVER_ARTIFACT_ROOT": str(artifacts_folder(database)),
        "_MLFLOW_SGI_NAME": "uvicorn",
        "_MLFLOW_IN_JOB_EXECUTOR": "false",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_ENABLE_AI_GATEWAY": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
    }


def _error_message(answer: httpx.Response) -> str:
    try:
        message = answer.json()["message"]
    except (ValueError, KeyError, TypeError):
        message = f"status {answer.status_code}"
    return printable(str(message), 300)
