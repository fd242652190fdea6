"""Where requests that change states run, and who waits for the disk meanwhile.

With states in files, requests run on the event loop itself: what they read and write is in memory, and handing each to
a thread and back takes longer than choosing a tip. The disk is waited for on a thread, once for all requests that came
while it was busy: they are answered together. Whatever has to wait for another process does so on a thread of its own.
With PostgreSQL, every request waits for the network, so it has a thread.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from contextvars import copy_context
from typing import NamedTuple, Protocol, TypeVar

from tipbench.core.locks import WouldWait
from tipbench.recommender.store.interface import Pending

MAX_WAITING_THREADS = 40
_Result = TypeVar("_Result")


class Executor(Protocol):
    async def run(self, function: Callable[[], _Result]) -> _Result:
        """Run a function; return or raise what it does, once that is durable."""
        ...

    def close(self) -> None:
        """Finish what was begun, then end all threads."""
        ...


class ThreadPool:
    """Runs every call on a thread, in the caller's context: for transactions that are durable when they end."""

    def __init__(self, threads: int, name: str = "states") -> None:
        self._pool = ThreadPoolExecutor(threads, name)

    async def run(self, function: Callable[[], _Result]) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._pool, copy_context().run, function)

    def close(self) -> None:
        self._pool.shutdown()


class _Waiting(NamedTuple):
    """A call that has run, and waits for the disk."""

    pending: Pending
    is_durable: "asyncio.Future[None]"

    def sync(self) -> None:
        with suppress(Exception):  # `finish` raises it again
            self.pending.sync()

    def finish(self) -> None:
        try:
            self.pending.finish()
        except Exception as error:  # noqa: BLE001 - it is raised where the call came from
            if not self.is_durable.done():
                self.is_durable.set_exception(error)
        else:
            if not self.is_durable.done():  # nobody waits for it any more
                self.is_durable.set_result(None)


class GroupCommit:
    """Runs calls on the event loop. Those that come while the disk is busy share the next sync."""

    def __init__(
        self,
        unsynced: Callable[[], AbstractContextManager[Pending]],
        on_sync: Callable[[float], None] = lambda _: None,
    ) -> None:
        """`unsynced` is a store's; `on_sync` is told how many seconds the disk took for those that waited together.

        The thread that syncs is started here: later there may be too many threads for another one.
        """
        self._unsynced = unsynced
        self._on_sync = on_sync
        self._next: list[_Waiting] = []
        self._syncing: list[_Waiting] = []
        self._disk = ThreadPoolExecutor(1, "sync")
        self._disk.submit(int)
        self._locked = ThreadPool(MAX_WAITING_THREADS, "states, waiting")

    async def run(self, function: Callable[[], _Result]) -> _Result:
        try:
            with self._unsynced() as pending:
                result = function()
        except WouldWait:
            await self._durable(pending)
            return await self._locked.run(function)
        except BaseException:
            await self._durable(pending)
            raise
        await self._durable(pending)
        return result

    def close(self) -> None:
        self._disk.shutdown()
        self._locked.close()
        for group in (self._syncing, self._next):
            for one in reversed(group):
                one.sync()
            for one in group:
                one.finish()
        self._syncing, self._next = [], []

    async def _durable(self, pending: Pending) -> None:
        if not pending:
            return
        loop = asyncio.get_running_loop()
        waiting = _Waiting(pending, loop.create_future())
        self._next.append(waiting)
        if not self._syncing:
            self._sync_next(loop)
        await waiting.is_durable

    def _sync_next(self, loop: asyncio.AbstractEventLoop) -> None:
        self._syncing, self._next = self._next, []
        if not self._syncing:
            return
        try:
            self._disk.submit(self._sync, self._syncing, loop)
        except RuntimeError:  # there is no thread: better the loop waits for the disk than their users for ever
            self._finish(self._syncing, loop)

    def _sync(self, group: list[_Waiting], loop: asyncio.AbstractEventLoop) -> None:
        start = time.perf_counter()
        try:
            for one in reversed(group):  # the last one's sync is for all that came before
                one.sync()
            self._on_sync(time.perf_counter() - start)
        finally:
            with suppress(RuntimeError):  # the loop was closed, so nobody waits any more
                loop.call_soon_threadsafe(self._finish, group, loop)

    def _finish(self, group: list[_Waiting], loop: asyncio.AbstractEventLoop) -> None:
        if group is not self._syncing:
            return  # `close` has finished it
        for one in group:
            one.finish()
        self._sync_next(loop)
