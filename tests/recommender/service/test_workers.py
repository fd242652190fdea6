"""Requests that come together share a sync, and none is answered before it."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest

from tipbench.recommender.service.workers import Workers
from tipbench.recommender.store.interface import LockedForNow


class Disk:
    """Counts syncs, and lets them end when they may. One that begins later is for all that were run before it."""

    def __init__(self) -> None:
        self.syncs = 0
        self.may_end = threading.Event()
        self.may_end.set()
        self.error: OSError | None = None
        self._run = self._durable = 0

    @contextmanager
    def unsynced(self) -> Iterator[Callable[[], None]]:
        yield lambda: self._sync(number)
        self._run += 1
        number = self._run

    def _sync(self, number: int) -> None:
        if number <= self._durable:
            return
        self.syncs += 1
        until = self._run
        self.may_end.wait(10)
        if self.error:
            raise self.error
        self._durable = until


def run_with(workers: Workers, story: Callable[[], Awaitable[None]]) -> None:
    async def told() -> None:
        await asyncio.wait_for(story(), 20)

    asyncio.run(told())
    workers.close()


def test_calls_that_come_together_share_a_sync() -> None:
    disk = Disk()
    workers = Workers(disk.unsynced, threads=2)
    ran: list[int] = []

    async def story() -> None:
        disk.may_end.clear()
        first = asyncio.create_task(workers.run(lambda: -1))
        while not disk.syncs:
            await asyncio.sleep(0.001)
        rest = [asyncio.create_task(workers.run(lambda n=n: ran.append(n) or n)) for n in range(16)]  # type: ignore
        while len(ran) < 16:  # they run while the disk is busy
            await asyncio.sleep(0.001)
        disk.may_end.set()
        assert await asyncio.gather(first, *rest) == [-1, *range(16)]
        assert disk.syncs <= 3

    run_with(workers, story)


def test_nothing_is_answered_before_it_is_synced() -> None:
    disk = Disk()
    workers = Workers(disk.unsynced, threads=1)
    ran = threading.Event()

    async def story() -> None:
        disk.may_end.clear()
        answer = asyncio.create_task(workers.run(ran.set))
        while not ran.is_set():
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.02)
        assert not answer.done()
        disk.may_end.set()
        await answer

    run_with(workers, story)


def test_a_call_that_raises_is_alone_with_it() -> None:
    workers = Workers(Disk().unsynced, threads=1)

    def fault() -> None:
        raise ValueError("a fault")

    async def story() -> None:
        answers = await asyncio.gather(workers.run(fault), workers.run(lambda: 1), return_exceptions=True)
        assert [str(answers[0]), answers[1]] == ["a fault", 1]

    run_with(workers, story)


def test_what_could_not_be_synced_is_not_answered() -> None:
    disk = Disk()
    workers = Workers(disk.unsynced, threads=1)

    async def story() -> None:
        disk.error = OSError(5, "Input/output error")
        answers = await asyncio.gather(*(workers.run(lambda: 1) for _ in range(3)), return_exceptions=True)
        assert all(isinstance(answer, OSError) for answer in answers)
        disk.error = None
        assert await workers.run(lambda: 2) == 2

    run_with(workers, story)


def test_who_waits_for_a_lock_keeps_nobody_else_waiting() -> None:
    disk = Disk()
    workers = Workers(disk.unsynced, threads=1)
    free, calls = threading.Event(), list[str]()

    def locked() -> str:
        calls.append(threading.current_thread().name)
        if len(calls) == 1:
            raise LockedForNow("u1")
        free.wait(10)
        return "at last"

    async def story() -> None:
        waiting = asyncio.create_task(workers.run(locked))
        assert await workers.run(lambda: "at once") == "at once"
        assert not waiting.done()
        free.set()
        assert await waiting == "at last"

    run_with(workers, story)
    assert calls[0] == "states"
    assert calls[1].startswith("states, waiting")


def test_an_answer_that_nobody_waits_for_any_more_harms_nobody() -> None:
    disk = Disk()
    workers = Workers(disk.unsynced, threads=1)

    async def story() -> None:
        disk.may_end.clear()
        answer = asyncio.create_task(workers.run(lambda: 1))
        await asyncio.sleep(0.01)
        answer.cancel()
        disk.may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await answer
        assert await workers.run(lambda: 2) == 2

    run_with(workers, story)


def test_a_pool_that_was_never_used_ends_too() -> None:
    Workers(Disk().unsynced, threads=2).close()
