"""A real MLflow server for tests, in a process group of its own, on a database in a folder of its own.

    with MlflowServer.start(folder) as server:
        use(server.url)

To run it by hand: ``python -m tests.integration.mlflow_server FOLDER``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import httpx
import psutil

from tests.user_cache import cache_folder, locked
from tipbench.bench.tracking.new_database import NewDatabase

START_SECONDS = 90.0
STOP_SECONDS = 5.0  # an open connection of a client holds it up
_PROBE = "/api/2.0/mlflow/experiments/get?experiment_id=0"  # not /health: that answers before the API does


class MlflowServerError(RuntimeError):
    """The server did not start; the message holds the end of its log."""


class MlflowServer:
    """A running server; leave the ``with`` block to end it together with all processes it started."""

    def __init__(self, url: str, process: psutil.Process, log: Path) -> None:
        self.url = url
        self.log = log
        self.process = process

    @classmethod
    @contextlib.contextmanager
    def shared(cls, folder: Path) -> Iterator[MlflowServer]:
        """One server for all processes that name this folder: a start takes 6 s of a core.

        The first starts it and the last ends it.
        """
        users = folder / "users"
        with locked(folder):
            if not users.exists():
                server = cls.start(folder / "server")
                users.write_text(f"0 {server.process.pid} {server.url}")
            pid, url = _count_user(users, +1)
        try:
            yield cls(url, psutil.Process(pid), folder / "server" / "server.log")
        finally:
            with locked(folder):
                _count_user(users, -1)

    @classmethod
    def start(
        cls,
        folder: Path,
        artifacts: Literal["served", "file"] = "served",
        static_prefix: str = "",
        allowed_hosts: str | None = None,
        port: int | None = None,
        database: str | None = None,
    ) -> MlflowServer:
        """Starts on a free port and returns once the API answers.

        ``artifacts``: with "served", files go through the server; with "file", runs have a path on the server's disk
        as their artifact URI, which REST can't reach. ``static_prefix`` moves everything below it, the URL included.
        ``allowed_hosts`` replaces the host names that the server takes from anybody ("name,name:*"). ``database``: the
        address of another one than a SQLite file in the folder.
        """
        folder = folder.absolute()
        folder.mkdir(parents=True, exist_ok=True)
        port = port or _free_port()
        if database is None and not (folder / "mlflow.db").exists():
            make_database(folder)
        command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
        command += ["--workers", "1", "--backend-store-uri", database or f"sqlite:///{folder / 'mlflow.db'}"]
        if artifacts == "served":
            command += ["--artifacts-destination", str(folder / "artifacts")]
        else:
            command += ["--no-serve-artifacts", "--default-artifact-root", str(folder / "artifacts")]
        if static_prefix:
            command += ["--static-prefix", static_prefix]
        if allowed_hosts:
            command += ["--allowed-hosts", allowed_hosts]
        log = folder / "server.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                command, cwd=folder, env=_environment(), start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            )  # fmt: skip
        server = cls(f"http://127.0.0.1:{port}{static_prefix}", psutil.Process(process.pid), log)
        process.returncode = 0  # found by its id from now on, also by those who share it: Popen need not miss it
        try:
            server._wait_until_ready(allowed_hosts)
        except BaseException:
            server.stop()
            raise
        return server

    def __enter__(self) -> MlflowServer:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the server, and by force what is left of its own process group; safe to call twice."""
        with contextlib.suppress(psutil.TimeoutExpired, psutil.NoSuchProcess):
            self.process.terminate()
            self.process.wait(STOP_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def _wait_until_ready(self, allowed_hosts: str | None) -> None:
        host = (allowed_hosts or "").partition(",")[0]
        headers = {"Host": host} if host not in ("", "*") else {}
        deadline = time.monotonic() + START_SECONDS
        with httpx.Client(trust_env=False, timeout=5.0) as client:
            while self.process.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
                with contextlib.suppress(httpx.TransportError):
                    if client.get(self.url + _PROBE, headers=headers).status_code == 200:
                        return
                time.sleep(0.1)
        tail = self.log.read_text(errors="replace")[-2000:]
        raise MlflowServerError(f"MLflow did not answer at {self.url}. The end of its log:\n{tail}")


def _count_user(users: Path, change: int) -> tuple[int, str]:
    """Count one user more or less, and end the server after the last; returns its process id and URL."""
    count, pid, url = users.read_text().split()
    if left := int(count) + change:
        users.write_text(f"{left} {pid} {url}")
    else:
        users.unlink()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(int(pid), signal.SIGKILL)  # its database goes with the tests' folder
    return int(pid), url


def make_database(folder: Path) -> None:
    """An empty one, copied from the user's cache: making its tables takes MLflow 3 s."""
    NewDatabase(folder / "mlflow.db", folder / "artifacts", cache_folder("test-databases")).finish()


def _environment() -> dict[str, str]:
    """Ours without what would steer MLflow elsewhere; no background jobs, nothing sent to its makers."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW_", "_MLFLOW_"))}
    return {**ours, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def main() -> int:
    """Serve until Ctrl-C or TERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # TERM acts like Ctrl-C
    try:
        with MlflowServer.start(Path(sys.argv[1])) as server:
            print(server.url, flush=True)
            return int(server.process.wait() or 0)
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
