"""Worker threads for requests that change states: those that come together share one sync of the disk.

A request is run by a thread, and then waits for the disk without one: a thread that finds nobody syncing does so for
all that wait, and answers them together. Meanwhile other threads run the requests that the next sync is for. The event
loop itself never waits for a lock or a disk. Whatever has to wait for another process does so on a thread of its own.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

from tipbench.recommender.store.interface import LockedForNow

MAX_WAITING_THREADS = 40
_Result = TypeVar("_Result")
Sync = Callable[[], None]


class _Call(NamedTuple):
    function: Callable[[], Any]
    answer: "asyncio.Future[Any]"


class _Ended(NamedTuple):
    answer: "asyncio.Future[Any]"
    sync: Sync
    result: Any
    error: BaseException | None

    def deliver(self) -> None:
        if self.answer.done():  # whoever waited for it has given up
            return
        if self.error is None:
            self.answer.set_result(self.result)
        else:
            self.answer.set_exception(self.error)


class Workers:
    """A pool of threads, which are started by the first call."""

    def __init__(
        self,
        unsynced: Callable[[], AbstractContextManager[Sync]],
        threads: int,
        on_sync: Callable[[float], None] = lambda _: None,
    ) -> None:
        """`unsynced` is a store's; `on_sync` is told how many seconds the disk took for those that waited together."""
        self._unsynced = unsynced
        self._on_sync = on_sync
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._ended: deque[_Ended] = deque()
        self._syncing = threading.Lock()
        self._threads = [threading.Thread(target=self._work, name="states", daemon=True) for _ in range(threads)]
        self._waiting = ThreadPoolExecutor(MAX_WAITING_THREADS, thread_name_prefix="states, waiting")
        self._started = False

    async def run(self, function: Callable[[], _Result]) -> _Result:
        """Run a function on a worker thread; return or raise what it does, once that is durable."""
        if not self._started:
            self._started = True
            for thread in self._threads:
                thread.start()
        answer: asyncio.Future[_Result] = asyncio.get_running_loop().create_future()
        self._calls.put(_Call(function, answer))
        return await answer

    def close(self) -> None:
        """Finish the calls that wait, then end the threads."""
        self._calls.put(None)
        if self._started:
            for thread in self._threads:
                thread.join()
        self._waiting.shutdown()

    def _work(self) -> None:
        while call := self._calls.get():
            with self._unsynced() as sync:
                ended = _run(call, sync)
            if isinstance(ended.error, LockedForNow):
                self._waiting.submit(_run_alone, call)
            else:
                self._ended.append(ended)
                self._sync_ended()
        self._calls.put(None)  # for the next thread

    def _sync_ended(self) -> None:
        """Sync and answer all that have ended, unless another thread does: that will look again when it is done."""
        while self._ended and self._syncing.acquire(blocking=False):
            try:
                group = [self._ended.popleft() for _ in range(len(self._ended))]
                start = time.perf_counter()
                ended = [_synced(one) for one in reversed(group)]  # the last sync is for all that came before
                self._on_sync(time.perf_counter() - start)
                _deliver(ended)
            finally:
                self._syncing.release()


def _run(call: _Call, sync: Sync) -> _Ended:
    try:
        return _Ended(call.answer, sync, call.function(), None)
    except BaseException as error:  # noqa: BLE001 - it is raised where the call came from
        return _Ended(call.answer, sync, None, error)


def _run_alone(call: _Call) -> None:
    _deliver([_run(call, lambda: None)])


def _synced(ended: _Ended) -> _Ended:
    try:
        ended.sync()
    except BaseException as error:  # noqa: BLE001 - nobody knows what is on disk, so it is not answered
        return ended._replace(error=error)
    return ended


def _deliver(ended: list[_Ended]) -> None:
    """Wake the event loop once for all; each service has one loop."""
    if ended:
        with suppress(RuntimeError):  # the loop was closed, so nobody waits any more
            ended[0].answer.get_loop().call_soon_threadsafe(_deliver_all, ended)


def _deliver_all(ended: list[_Ended]) -> None:
    for one in ended:
        one.deliver()
