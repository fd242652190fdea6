"""Starts `tipbench serve` as a user does, and ends it."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil

TOKEN = "an-admin-token-for-tests-only"
_PATIENCE_S = 60.0


class Served:
    """A running server. Its home and settings are those of the environment that it is started in."""

    home: Path  # where whoever starts it says so

    def __init__(
        self, *flags: str, command: Sequence[str] = ("serve",), program: str = "tipbench", **environment: str
    ) -> None:
        self._log = tempfile.TemporaryFile("w+")  # a pipe that nobody reads would be full some day  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-m", program, *command, "--port", "0", *flags],
            env={**os.environ, "TIPBENCH_ADMIN_TOKEN": TOKEN, "PYTHONUNBUFFERED": "1", **environment},
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.out: list[str] = []
        assert self._process.stdout
        for line in self._process.stdout:
            self.out.append(line)
            found = re.search(r"serves at (http://\S+)", line)
            if found:
                self.url = found[1]
                return
        raise AssertionError(f"the server did not start: {self.out} {self._rest()}")

    @property
    def pid(self) -> int:
        return self._process.pid

    def client(self, token: str = TOKEN) -> httpx.Client:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=_PATIENCE_S, trust_env=False)

    def end(self, by: signal.Signals = signal.SIGINT) -> str:
        """Tidily; what it logged."""
        self._process.send_signal(by)
        return self._rest()

    def kill(self) -> str:
        self._process.kill()
        return self._rest()

    def _rest(self) -> str:
        self._process.communicate(timeout=_PATIENCE_S)
        with self._log:
            self._log.seek(0)
            return self._log.read()


@contextmanager
def serving(*flags: str, **environment: str) -> Iterator[Served]:
    """With its end, jobs that still run end too: they would outlive a test that failed."""
    served = Served(*flags, **environment)
    try:
        yield served
    finally:
        logged = served.end()
        _end_jobs(environment.get("TIPBENCH_HOME") or os.environ["TIPBENCH_HOME"])
        assert "Traceback" not in logged, logged


def _end_jobs(home: str) -> None:
    folders = (f"{home}/server/jobs/", f"{home}/server/simulations/")
    for process in psutil.process_iter(["cmdline"]):
        if any(word.startswith(folders) for word in process.info["cmdline"] or ()):
            with suppress(psutil.NoSuchProcess):
                process.kill()


def until(what: Callable[[], Any], patience_s: float = _PATIENCE_S, every_s: float = 0.1) -> Any:
    """Waits until it is true, and gives what it then is."""
    deadline = time.monotonic() + patience_s
    while not (found := what()):
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(every_s)
    return found


def ended_job(client: httpx.Client, job_id: str, patience_s: float = _PATIENCE_S) -> dict[str, Any]:
    """The job once it has ended."""

    def look() -> dict[str, Any] | None:
        job: dict[str, Any] = client.get(f"/api/jobs/{job_id}").raise_for_status().json()
        return job if job["ended_ms"] else None

    found: dict[str, Any] = until(look, patience_s)
    return found


def start_run(client: httpx.Client, **config: Any) -> dict[str, Any]:
    answer = client.post("/api/bench/run", json=config)
    assert answer.status_code == 202, answer.text
    job: dict[str, Any] = answer.json()
    return job
