"""A server that runs while it is in use: started by the first request, stopped after an idle period."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tipbench.core.errors import TrackingError
from tipbench.server.mlflow_pages.server_process import ServerProcess

_RESTART_DELAY_S = 10.0  # between two starts of a server that fails


class OnDemandServer:
    """Starts and stops the server within one event loop. Requests that arrive during a start share it."""

    def __init__(self, new_server: Callable[[], ServerProcess], idle_s: float) -> None:
        self._new_server = new_server
        self._idle_s = idle_s
        self._starting: asyncio.Task[ServerProcess] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._started_s = float("-inf")
        self._users = 0
        self._last_used_s = 0.0
        self._is_closed = False

    @asynccontextmanager
    async def in_use(self, patience_s: float) -> AsyncIterator[ServerProcess | None]:
        """Yield the server when it is ready; None if it is still starting after `patience_s`."""
        self._users += 1
        try:
            yield await self._ready(patience_s)
        finally:
            self._users -= 1
            self._last_used_s = time.monotonic()

    async def close(self) -> None:
        self._is_closed = True
        starting, self._starting = self._starting, None
        for task in (starting, self._watching):
            if task:
                task.cancel()
        done = await asyncio.gather(*(task for task in (starting, self._watching) if task), return_exceptions=True)
        for server in done:
            if isinstance(server, ServerProcess):
                await server.stop()

    async def _ready(self, patience_s: float) -> ServerProcess | None:
        if self._starting is None or _has_ended(self._starting):
            self._begin()
        assert self._starting is not None
        starting = self._starting
        await asyncio.wait({starting}, timeout=patience_s)
        return starting.result() if starting.done() else None

    def _begin(self) -> None:
        """Begin to start the server; raise TrackingError if the last start was only a moment ago."""
        if self._is_closed:
            raise TrackingError("the server is shutting down, and MLflow's pages with it")
        wait_s = self._started_s + _RESTART_DELAY_S - time.monotonic()
        if wait_s > 0:
            problem = self._starting.exception() if self._starting else None
            reason = str(problem or "MLflow's server ended soon after its start")
            raise TrackingError(f"{reason}; it can be started again in {wait_s:.0f} s")
        self._started_s = time.monotonic()
        self._starting = asyncio.create_task(self._start(self._starting))

    async def _start(self, before: asyncio.Task[ServerProcess] | None) -> ServerProcess:
        if before and before.exception() is None:
            await before.result().stop()  # it died and left its socket behind
            if self._watching:
                self._watching.cancel()
        server = self._new_server()
        try:
            await server.wait_until_ready()
        except BaseException:
            await server.stop()
            self._started_s = time.monotonic()  # where a start takes long, the delay counts from its failure
            raise
        self._watching = asyncio.create_task(self._stop_when_idle(server))
        return server

    async def _stop_when_idle(self, server: ServerProcess) -> None:
        while server.is_alive:
            unused_s = 0.0 if self._users else time.monotonic() - self._last_used_s
            if unused_s >= self._idle_s:
                self._starting = None
                self._started_s = float("-inf")
                await server.stop()
                return
            await asyncio.sleep(self._idle_s - unused_s)


def _has_ended(starting: asyncio.Task[ServerProcess]) -> bool:
    return starting.done() and (starting.exception() is not None or not starting.result().is_alive)
