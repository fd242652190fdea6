"""The event loop waits neither for the disk nor for a lock, whoever else is at work on the same home."""

import asyncio
import fcntl
import os
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.recommender.gates import V2
from tests.recommender.service.asking import request, reward
from tests.recommender.service.conftest import Service
from tests.recommender.service.test_quick import Post, of_service
from tipbench.core.files import seal
from tipbench.core.locks import may_wait
from tipbench.recommender.log import segmented_log
from tipbench.recommender.log.segmented_log import SegmentLog, entries, segments
from tipbench.recommender.promotion.files import FilePromotions
from tipbench.recommender.store import journal
from tipbench.recommender.store.files import FileStore
from tipbench.recommender.store.interface import Key


def is_awaited() -> bool:
    """Whether others wait for this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return not may_wait()
    return True


@contextmanager
def seen_waiting(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Where the event loop has waited for the disk, or for anything."""
    seen: list[str] = []

    def watched(work: Callable[[Any], None], what: Any) -> None:
        if is_awaited():
            seen.append("".join(traceback.format_stack(limit=8)))
        work(what)

    with monkeypatch.context() as patched:
        for place, name in ((os, "fsync"), (os, "fdatasync"), (time, "sleep")):
            work = getattr(place, name)
            patched.setattr(place, name, lambda what, work=work: watched(work, what))
        yield seen


async def until(done: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not done():
            await asyncio.sleep(0.002)


async def both(post: Post, event: str, user_id: str) -> None:
    assert await post("/score", request(event, user_id)) == 200
    assert await post("/reward", reward(event, 0.5, user_id)) == 200


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def told() -> None:
        async with asyncio.timeout(60):
            await story()

    asyncio.run(told())


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the journal and of the log, so that requests begin many; and the log is synced all the time."""
    monkeypatch.setattr(journal, "SEGMENT_BYTES", 10_000)
    monkeypatch.setattr(segmented_log, "_SYNC_INTERVAL_S", 0.0)
    monkeypatch.setattr(SegmentLog.__init__, "__defaults__", (10_000,))


def test_it_begins_and_ends_segments_without_waiting_for_the_disk(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = service.home / "recommender" / "decisions"

    async def story() -> None:
        post, events = of_service(service), count()
        for turn in range(6):
            for path in segments(logs) if turn == 3 else []:
                with path.open() as file:
                    seal(file.fileno())
            users = (f"u{number}" for number in range(10))
            await asyncio.gather(*(both(post, f"e{next(events)}", user_id) for user_id in users))

    with seen_waiting(monkeypatch) as seen:
        run(story)
    assert not seen, seen[0]
    assert len(segments(logs)) > 3
    assert len(list(entries(logs))) == 120


def test_it_answers_others_while_a_policy_is_being_promoted(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which takes as long as the disk takes, under a lock that requests need."""
    promotions = FilePromotions(service.states.with_name("promotions.jsonl"))
    syncing, goes_on, sync = threading.Event(), threading.Event(), os.fsync

    def slow_sync(file: int) -> None:
        if Path(f"/proc/self/fd/{file}").readlink().name == "promotions.jsonl":
            syncing.set()
            assert goes_on.wait(60)
        sync(file)

    async def story() -> None:
        post = of_service(service)
        with ThreadPoolExecutor(1) as pool:
            promoted = pool.submit(promotions.append, V2, 0)
            await until(syncing.is_set)
            waiting = asyncio.create_task(both(post, "e1", "u1"))
            assert await post("/score/linucb", request("e2", "u2")) == 200
            assert not waiting.done()
            goes_on.set()
            await waiting
            promoted.result()

    monkeypatch.setattr(os, "fsync", slow_sync)
    with seen_waiting(monkeypatch) as seen:
        run(story)
    assert not seen, seen[0]


def test_it_answers_others_while_another_process_has_a_lock(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's, or that of a segment of the log, which somebody takes lines out of."""
    logs = service.home / "recommender" / "decisions"
    is_held, goes_on = threading.Event(), threading.Event()

    def hold() -> None:
        with FileStore(service.states).transaction(Key("u1", "egreedy")):
            is_held.set()
            assert goes_on.wait(60)

    async def story() -> None:
        post = of_service(service)
        with ThreadPoolExecutor(1) as pool:
            holding = pool.submit(hold)
            await until(is_held.is_set)
            waiting = asyncio.create_task(both(post, "e1", "u1"))
            await both(post, "e2", "u2")
            assert not waiting.done()
            goes_on.set()
            await waiting
            holding.result()
        with segments(logs)[-1].open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            waiting = asyncio.create_task(both(post, "e3", "u3"))
            assert await post("/score", request("e2", "u2")) == 200  # again, which needs no line
            assert not waiting.done()
            fcntl.flock(file, fcntl.LOCK_UN)
            await waiting

    with seen_waiting(monkeypatch) as seen:
        run(story)
    assert not seen, seen[0]
