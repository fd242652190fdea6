"""Requests that come together share a sync, none is answered before it, and the event loop waits for nothing."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import pytest

from tipbench.core.locks import WouldWait, may_wait, no_waiting
from tipbench.recommender.service.executors import Executor, GroupCommit, ThreadPool


class Disk:
    """Counts syncs, and lets them end when they may. One that begins later is for all that were run before it."""

    def __init__(self) -> None:
        self.syncs = 0
        self.finished: list[int] = []
        self.syncs_by_the_loop = 0
        self.may_end = threading.Event()
        self.may_end.set()
        self.error: OSError | None = None
        self.run = self.durable = 0

    @contextmanager
    def unsynced(self) -> Iterator["Written"]:
        with no_waiting():
            yield Written(self)
        self.run += 1


class Written:
    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._number = disk.run + 1
        self._error: OSError | None = None

    def __bool__(self) -> bool:
        return True

    def sync(self) -> None:
        disk = self._disk
        if self._number <= disk.durable:
            return
        if self._error:
            raise self._error
        disk.syncs += 1
        disk.syncs_by_the_loop += threading.current_thread() is threading.main_thread()
        until = disk.run
        disk.may_end.wait(10)
        if disk.error:
            self._error = disk.error
            raise disk.error
        disk.durable = until

    def finish(self) -> None:
        self.sync()
        self._disk.finished.append(self._number)


def run_with(executor: Executor, story: Callable[[], Awaitable[None]]) -> None:
    async def told() -> None:
        await asyncio.wait_for(story(), 20)

    asyncio.run(told())
    executor.close()


def test_calls_that_come_together_share_a_sync() -> None:
    disk = Disk()
    group_commit = GroupCommit(disk.unsynced)
    ran: list[int] = []

    async def story() -> None:
        disk.may_end.clear()
        first = asyncio.create_task(group_commit.run(lambda: -1))
        while not disk.syncs:
            await asyncio.sleep(0.001)
        rest = [asyncio.create_task(group_commit.run(lambda n=n: ran.append(n) or n)) for n in range(16)]  # type: ignore
        while len(ran) < 16:  # they run while the disk is busy
            await asyncio.sleep(0.001)
        disk.may_end.set()
        assert await asyncio.gather(first, *rest) == [-1, *range(16)]
        assert disk.syncs == 2
        assert disk.finished == list(range(1, 18))
        assert not disk.syncs_by_the_loop

    run_with(group_commit, story)


def test_nothing_is_answered_before_it_is_synced() -> None:
    disk = Disk()
    group_commit = GroupCommit(disk.unsynced)
    ran = threading.Event()

    async def story() -> None:
        disk.may_end.clear()
        answer = asyncio.create_task(group_commit.run(ran.set))
        while not ran.is_set():
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.02)
        assert not answer.done()
        assert not disk.finished
        disk.may_end.set()
        await answer

    run_with(group_commit, story)


@contextmanager
def nothing_changed() -> Iterator[tuple[()]]:
    yield ()


def test_what_changed_nothing_waits_for_nothing() -> None:
    group_commit = GroupCommit(nothing_changed)  # type: ignore[arg-type]

    async def story() -> None:
        assert await group_commit.run(lambda: "known already") == "known already"

    run_with(group_commit, story)


def test_a_call_that_raises_is_alone_with_it() -> None:
    disk = Disk()
    group_commit = GroupCommit(disk.unsynced)

    def fault() -> None:
        raise ValueError("a fault")

    async def story() -> None:
        answers = await asyncio.gather(group_commit.run(fault), group_commit.run(lambda: 1), return_exceptions=True)
        assert [str(answers[0]), answers[1]] == ["a fault", 1]
        assert len(disk.finished) == 2  # what it has done before is stored, or it would lock its user for ever

    run_with(group_commit, story)


def test_what_could_not_be_synced_is_not_answered() -> None:
    disk = Disk()
    group_commit = GroupCommit(disk.unsynced)

    async def story() -> None:
        disk.error = OSError(5, "Input/output error")
        answers = await asyncio.gather(*(group_commit.run(lambda: 1) for _ in range(3)), return_exceptions=True)
        assert all(isinstance(answer, OSError) for answer in answers)
        disk.error = None
        assert await group_commit.run(lambda: 2) == 2

    run_with(group_commit, story)


def test_who_waits_for_a_lock_keeps_nobody_else_waiting() -> None:
    group_commit = GroupCommit(Disk().unsynced)
    free, calls = threading.Event(), list[str]()

    def locked() -> str:
        calls.append(threading.current_thread().name)
        if not may_wait():
            raise WouldWait
        free.wait(10)
        return "at last"

    async def story() -> None:
        waiting = asyncio.create_task(group_commit.run(locked))
        assert await group_commit.run(lambda: "at once") == "at once"
        assert not waiting.done()
        free.set()
        assert await waiting == "at last"

    run_with(group_commit, story)
    assert calls[0] == threading.main_thread().name
    assert calls[1].startswith("states, waiting")


def test_an_answer_that_nobody_waits_for_any_more_harms_nobody() -> None:
    disk = Disk()
    group_commit = GroupCommit(disk.unsynced)

    async def story() -> None:
        disk.may_end.clear()
        answer = asyncio.create_task(group_commit.run(lambda: 1))
        await asyncio.sleep(0.01)
        answer.cancel()
        disk.may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await answer
        assert await group_commit.run(lambda: 2) == 2
        assert disk.finished == [1, 2]

    run_with(group_commit, story)


def test_closing_finishes_what_waits_for_the_disk() -> None:
    disk = Disk()
    group_commit = GroupCommit(disk.unsynced)

    async def story() -> None:
        disk.may_end.clear()
        answers = [asyncio.create_task(group_commit.run(lambda: 1))]
        await asyncio.sleep(0.01)  # the first is being synced, the others wait for that
        answers += [asyncio.create_task(group_commit.run(lambda: 1)) for _ in range(2)]
        await asyncio.sleep(0.01)
        threading.Timer(0.05, disk.may_end.set).start()
        group_commit.close()
        assert disk.finished == [1, 2, 3]
        assert await asyncio.gather(*answers) == [1, 1, 1]

    asyncio.run(story())
    assert disk.finished == [1, 2, 3]


def test_a_fault_of_whoever_counts_syncs_keeps_nobody_waiting() -> None:
    def fault(_: float) -> None:
        raise ValueError("a fault")

    group_commit = GroupCommit(Disk().unsynced, fault)

    async def story() -> None:
        assert [await group_commit.run(lambda n=n: n) for n in range(3)] == [0, 1, 2]  # type: ignore[misc]

    run_with(group_commit, story)


def test_no_thread_is_started_for_the_disk_once_there_are_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk()
    group_commit = GroupCommit(disk.unsynced)

    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def story() -> None:
        monkeypatch.setattr(threading.Thread, "start", fail)
        assert await group_commit.run(lambda: 1) == 1
        monkeypatch.undo()
        assert not disk.syncs_by_the_loop

    run_with(group_commit, story)


def test_what_no_thread_can_sync_is_synced_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is told that a change counts before that, and nobody's user stays locked."""
    disk = Disk()
    group_commit = GroupCommit(disk.unsynced)

    def fail(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    async def story() -> None:
        with monkeypatch.context() as patched:
            patched.setattr(group_commit._disk, "submit", fail)
            assert await asyncio.gather(*(group_commit.run(lambda n=n: n) for n in range(3))) == [0, 1, 2]  # type: ignore
        assert disk.syncs_by_the_loop
        assert await group_commit.run(lambda: 3) == 3
        assert disk.finished == [1, 2, 3, 4]

    run_with(group_commit, story)


@pytest.mark.parametrize("executor", [GroupCommit(Disk().unsynced), ThreadPool(2)], ids=lambda one: type(one).__name__)
def test_one_that_was_never_used_ends_too(executor: Executor) -> None:
    executor.close()


_REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="none")


def test_a_thread_knows_the_request_that_it_runs() -> None:
    pool = ThreadPool(1)

    async def story() -> None:
        _REQUEST_ID.set("r1")
        assert await pool.run(lambda: (_REQUEST_ID.get(), threading.current_thread().name)) == ("r1", "states_0")

    run_with(pool, story)
