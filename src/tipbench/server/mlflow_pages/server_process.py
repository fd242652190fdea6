"""MLflow's server as a child process, used from an event loop."""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

import httpx

from tipbench.bench.tracking.artifacts import artifacts_folder
from tipbench.bench.tracking.mlflow_process import HOST, PROBE, START_S, MlflowProcess
from tipbench.core.errors import TrackingError

_ANSWER_S = 300.0  # MLflow takes half a minute to search ten thousand runs


class ServerProcess:
    """Starts the server on construction; it and its socket are gone after `stop`, or however this process ends."""

    def __init__(self, database: Path, log: Path, environment: Mapping[str, str]) -> None:
        self._log = log
        self._process = MlflowProcess(database, artifacts_folder(database), environment, log)
        self.client = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=str(self._process.socket), limits=httpx.Limits(keepalive_expiry=30)),
            base_url=f"http://{HOST}",
            timeout=httpx.Timeout(_ANSWER_S, connect=5.0),
            trust_env=False,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive

    async def wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_S
        while self.is_alive and time.monotonic() < deadline:
            try:
                answer = await self.client.get(PROBE)
            except httpx.TransportError:
                await asyncio.sleep(0.1)
                continue
            self._process.check_answer(answer)
            return
        raise TrackingError(f"{self._process.start_failure()}; its log is {self._log}")

    async def stop(self) -> None:
        try:
            await asyncio.to_thread(self._process.stop)
        finally:  # also when this task is cancelled
            await self.client.aclose()
            self._process.remove_socket()
