"""MLflow's own server for a database file: a child process on a unix socket, in a folder for its owner only."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import httpx

from tipbench.bench.tracking.mlflow_client import MlflowClient
from tipbench.bench.tracking.mlflow_schema import check_schema
from tipbench.bench.tracking.mlflow_store import MISSING
from tipbench.core.errors import MissingExtra, TrackingError
from tipbench.core.files import make_private_folder
from tipbench.core.processes import module_command, start_process
from tipbench.core.settings import Settings
from tipbench.core.untrusted import printable

HOST = "localhost"  # accepted by MLflow's host check
PROBE = "/api/2.0/mlflow/experiments/get?experiment_id=0"  # opens the database, unlike /health
START_S = 120.0
STOP_S = 5.0


class MlflowProcess:
    """Starts the server on construction; it and its socket are gone after `stop`, or however this process ends."""

    def __init__(
        self, database: Path, artifacts: Path, environment: Mapping[str, str], log: Path | None = None
    ) -> None:
        """`log` is the file for the server's output; without one, it is gone after `stop`."""
        check_schema(database)
        self.database = database
        self._folder = Path(tempfile.mkdtemp(prefix="tipbench-"))  # short: a socket's path is limited to 107 bytes
        self.socket = self._folder / "mlflow.sock"
        self._log = log or self._folder / "mlflow.log"
        make_private_folder(self._log.parent)
        out = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            self._process = start_process(
                module_command("tipbench.bench.tracking.mlflow_process_main", str(self.socket)),
                stdin=subprocess.PIPE,  # its end tells the child that this process is gone
                stdout=out,
                stderr=out,
                environment=_environment(database, artifacts, environment),
            )
        finally:
            os.close(out)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        finally:
            self.remove_socket()

    def remove_socket(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def check_answer(self, answer: httpx.Response) -> None:
        """Raise TrackingError if this answer to PROBE says that the database can't be used."""
        if answer.is_server_error:
            raise TrackingError(f"MLflow can't use {self.database}: {_error_message(answer)}")

    def start_failure(self) -> TrackingError:
        """Return the error that says why the server does not answer."""
        ended = f"ended with status {self._process.returncode}"
        how = f"did not answer within {START_S:g} s" if self.is_alive else ended
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        last = printable(lines[-1], 300) if lines else "it printed nothing"
        return TrackingError(f"MLflow's server {how}: {last}")


@contextmanager
def served_database(database: Path, artifacts: Path, environment: Mapping[str, str]) -> Iterator[MlflowClient]:
    """Start MLflow's server for a database file, which takes seconds; yield a client of it, and stop it at the end."""
    if find_spec("mlflow") is None:
        raise MissingExtra(MISSING)
    process = MlflowProcess(database, artifacts, environment)
    transport = httpx.HTTPTransport(uds=str(process.socket))
    client = MlflowClient(f"http://{HOST}", Settings({}), transport)
    try:
        _wait_until_ready(process, transport)
        yield client
    finally:
        client.close()
        process.stop()


def _wait_until_ready(process: MlflowProcess, transport: httpx.HTTPTransport) -> None:
    deadline = time.monotonic() + START_S
    while not _accepts(process.socket):
        if not process.is_alive or time.monotonic() > deadline:
            raise process.start_failure()
        time.sleep(0.1)
    request = httpx.Request("GET", f"http://{HOST}{PROBE}", extensions={"timeout": {"read": START_S}})
    try:
        answer = transport.handle_request(request)
        answer.read()
    except httpx.TransportError:
        raise process.start_failure() from None
    process.check_answer(answer)


def _accepts(path: Path) -> bool:
    """Return whether something listens on the socket; HTTP clients leave sockets open that could not connect."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def _environment(database: Path, artifacts: Path, ours: Mapping[str, str]) -> dict[str, str]:
    """Return our environment with what `mlflow server` sets for its workers, without other MLflow variables."""
    environment = {name: value for name, value in ours.items() if not name.startswith(("MLFLOW_", "_MLFLOW_"))}
    return environment | {
        "_MLFLOW_SERVER_FILE_STORE": f"sqlite:///{database}",  # MLflow itself waits 20 s for other writers
        "_MLFLOW_SERVER_ARTIFACT_ROOT": str(artifacts),
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
