"""Worker threads for requests that change states: those that come together share one sync of the disk.

A thread takes whatever waits, runs it, and answers all of it together once the store says that it is durable. The event
loop itself never waits for a lock or a disk. Whatever has to wait for another process does so on a thread of its own.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from tipbench.recommender.store.interface import LockedForNow

MAX_WAITING_THREADS = 40
_Result = TypeVar("_Result")


class _Call(NamedTuple):
    function: Callable[[], Any]
    answer: "asyncio.Future[Any]"


class _Ended(NamedTuple):
    answer: "asyncio.Future[Any]"
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

    def __init__(self, group: Callable[[], AbstractContextManager[None]], threads: int, max_group: int) -> None:
        """`group` is a store's: what runs in it is durable when it ends. It holds at most `max_group` calls."""
        self._group = group
        self._max_group = max_group
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
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
            ended: list[_Ended] = []
            try:
                with self._group():
                    self._run_group(call, ended)
            except BaseException as error:  # noqa: BLE001 - nobody knows what is on disk, so none of it is answered
                ended = [_Ended(one.answer, None, error) for one in ended]
            _deliver(ended)
        self._calls.put(None)  # for the next thread

    def _run_group(self, call: _Call | None, ended: list[_Ended]) -> None:
        while call:
            done = _run(call)
            if isinstance(done.error, LockedForNow):
                self._waiting.submit(_run_alone, call)
            else:
                ended.append(done)
            call = self._waiting_call() if len(ended) < self._max_group else None

    def _waiting_call(self) -> _Call | None:
        try:
            call = self._calls.get_nowait()
        except Empty:
            return None
        if call is None:
            self._calls.put(None)
        return call


def _run(call: _Call) -> _Ended:
    try:
        return _Ended(call.answer, call.function(), None)
    except BaseException as error:  # noqa: BLE001 - it is raised where the call came from
        return _Ended(call.answer, None, error)


def _run_alone(call: _Call) -> None:
    _deliver([_run(call)])


def _deliver(ended: list[_Ended]) -> None:
    """Wake the event loop once for all calls that have ended; each service has one loop."""
    if not ended:
        return
    with suppress(RuntimeError):  # the loop was closed, so nobody waits any more
        ended[0].answer.get_loop().call_soon_threadsafe(_deliver_all, ended)


def _deliver_all(ended: list[_Ended]) -> None:
    for one in ended:
        one.deliver()
