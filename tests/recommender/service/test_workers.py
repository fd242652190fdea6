"""Requests that come together share a sync, and none is answered before it."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest

from tipbench.recommender.service.workers import Workers
from tipbench.recommender.store.interface import LockedForNow


class Groups:
    """Counts groups, and lets them end when they may."""

    def __init__(self) -> None:
        self.number = 0
        self.may_end = threading.Event()
        self.may_end.set()
        self.error: OSError | None = None

    @contextmanager
    def group(self) -> Iterator[None]:
        self.number += 1
        yield
        self.may_end.wait(10)
        if self.error:
            raise self.error


def run_with(workers: Workers, story: Callable[[], Awaitable[None]]) -> None:
    async def told() -> None:
        await asyncio.wait_for(story(), 20)

    asyncio.run(told())
    workers.close()


def test_calls_that_come_together_share_a_group() -> None:
    groups = Groups()
    workers = Workers(groups.group, threads=1, max_group=32)

    async def story() -> None:
        groups.may_end.clear()
        first = asyncio.create_task(workers.run(lambda: -1))
        while not groups.number:
            await asyncio.sleep(0.001)
        rest = [asyncio.create_task(workers.run(lambda n=n: n)) for n in range(16)]  # type: ignore[misc]
        await asyncio.sleep(0.01)
        groups.may_end.set()
        assert await asyncio.gather(first, *rest) == [-1, *range(16)]
        assert groups.number <= 2

    run_with(workers, story)


def test_nothing_is_answered_before_its_group_has_ended() -> None:
    groups = Groups()
    workers = Workers(groups.group, threads=1, max_group=32)
    ran = threading.Event()

    async def story() -> None:
        groups.may_end.clear()
        answer = asyncio.create_task(workers.run(ran.set))
        while not ran.is_set():
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.02)
        assert not answer.done()
        groups.may_end.set()
        await answer

    run_with(workers, story)


def test_a_group_holds_no_more_than_it_may() -> None:
    groups = Groups()
    workers = Workers(groups.group, threads=1, max_group=1)

    async def story() -> None:
        await asyncio.gather(*(workers.run(lambda: None) for _ in range(5)))
        assert groups.number == 5

    run_with(workers, story)


def test_a_call_that_raises_is_alone_with_it() -> None:
    workers = Workers(Groups().group, threads=1, max_group=32)

    def fault() -> None:
        raise ValueError("a fault")

    async def story() -> None:
        answers = await asyncio.gather(workers.run(fault), workers.run(lambda: 1), return_exceptions=True)
        assert [str(answers[0]), answers[1]] == ["a fault", 1]

    run_with(workers, story)


def test_if_a_group_is_not_durable_none_of_it_is_answered() -> None:
    groups = Groups()
    workers = Workers(groups.group, threads=1, max_group=32)

    async def story() -> None:
        groups.error = OSError(5, "Input/output error")
        answers = await asyncio.gather(*(workers.run(lambda: 1) for _ in range(3)), return_exceptions=True)
        assert all(isinstance(answer, OSError) for answer in answers)
        groups.error = None
        assert await workers.run(lambda: 2) == 2

    run_with(workers, story)


def test_who_waits_for_a_lock_keeps_nobody_else_waiting() -> None:
    groups = Groups()
    workers = Workers(groups.group, threads=1, max_group=32)
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
    groups = Groups()
    workers = Workers(groups.group, threads=1, max_group=32)

    async def story() -> None:
        groups.may_end.clear()
        answer = asyncio.create_task(workers.run(lambda: 1))
        await asyncio.sleep(0.01)
        answer.cancel()
        groups.may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await answer
        assert await workers.run(lambda: 2) == 2

    run_with(workers, story)


def test_a_pool_that_was_never_used_ends_too() -> None:
    Workers(Groups().group, threads=2, max_group=1).close()
