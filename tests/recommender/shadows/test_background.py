"""Work aside: in time or not at all, counted in any case, and nobody waits for it."""

import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.recommender.waiting import LONG_S, wait_until
from tipbench.recommender.shadows.background import THREADS, BackgroundExecutor, Counts, Done

Doing = Callable[[], object]
Publish = Callable[[Done[Doing, object]], None]


def fine() -> str:
    return "done"


def raises() -> None:
    raise ValueError("no")


def slow() -> None:
    time.sleep(0.01)


class Place:
    """Items are what is to be done. What hangs, hangs until the place is left."""

    def __init__(self) -> None:
        self.published: list[Done[Doing, object]] = []
        self.complaints: list[Exception] = []
        self.goes_on = threading.Event()
        self.made: list[BackgroundExecutor[Doing, object]] = []

    def aside(
        self, longest_s: float = LONG_S, most_waiting: int = 100, publish: Publish | None = None
    ) -> BackgroundExecutor[Doing, object]:
        aside = BackgroundExecutor(
            "aside",
            lambda item: item(),
            publish or self.published.append,
            self.complaints.append,
            longest_s,
            most_waiting,
        )
        self.made.append(aside)
        return aside

    def hang(self) -> None:
        assert self.goes_on.wait(LONG_S)

    def leave(self) -> None:
        self.goes_on.set()
        for aside in self.made:
            aside.close()
        wait_until(lambda: not threads())


@pytest.fixture
def place() -> Iterator[Place]:
    place = Place()
    yield place
    place.leave()


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("aside")]


def test_all_that_is_offered_is_published_in_its_order(place: Place) -> None:
    aside = place.aside()
    numbers: list[Doing] = [lambda number=number: number for number in range(50)]  # type: ignore[misc]
    for number in numbers:
        aside.offer(number)
    wait_until(lambda: aside.counts().published == 50)
    assert [done.result for done in place.published] == list(range(50))
    assert aside.counts() == Counts(offered=50, published=50)


def test_what_is_published_says_how_long_it_waited_and_took(place: Place) -> None:
    aside = place.aside()
    aside.offer(slow)
    aside.offer(fine)
    wait_until(lambda: aside.counts().published == 2)
    first, second = place.published
    assert first.took_s >= 0.01
    assert second.waited_s >= 0.01
    assert (second.counts.offered, second.counts.published, second.counts.in_flight) == (2, 1, 1)


def test_what_raises_is_dropped_and_told_and_the_next_is_done(place: Place) -> None:
    aside = place.aside()
    aside.offer(raises)
    aside.offer(fine)
    wait_until(lambda: aside.counts().in_flight == 0)
    assert aside.counts() == Counts(offered=2, published=1, failed=1)
    assert [str(error) for error in place.complaints] == ["no"]


def test_what_can_not_be_published_is_dropped_and_told(place: Place) -> None:
    def full(_: Done[Doing, object]) -> None:
        raise OSError("No space left on device")

    aside = place.aside(publish=full)
    aside.offer(fine)
    wait_until(lambda: aside.counts().failed == 1)
    assert aside.counts() == Counts(offered=1, failed=1)
    assert [str(error) for error in place.complaints] == ["No space left on device"]


def test_what_takes_too_long_is_late_and_never_published(place: Place) -> None:
    aside = place.aside(longest_s=0.05)
    ended = threading.Event()

    def too_slow() -> None:
        time.sleep(0.2)
        ended.set()

    aside.offer(too_slow)
    wait_until(lambda: aside.counts().late == 1)
    assert not ended.is_set(), "it is late as soon as its time is over"
    assert ended.wait(LONG_S)
    aside.close()
    assert aside.counts() == Counts(offered=1, late=1)
    assert place.published == []


def test_what_fails_too_late_is_late_and_counted_once(place: Place) -> None:
    aside = place.aside(longest_s=0.05)

    def fails_late() -> None:
        time.sleep(0.1)
        raise ValueError("late")

    aside.offer(fails_late)
    wait_until(lambda: bool(place.complaints))
    aside.close()
    assert aside.counts() == Counts(offered=1, late=1)


def test_another_thread_takes_over_from_one_that_hangs(place: Place) -> None:
    aside = place.aside(longest_s=0.5)
    aside.offer(place.hang)
    wait_until(lambda: aside.counts().late == 1)
    aside.offer(fine)
    wait_until(lambda: aside.counts().in_flight == 0)
    assert aside.counts() == Counts(offered=2, published=1, late=1)


def test_what_waited_behind_one_that_hung_is_done_if_there_is_time(place: Place) -> None:
    """Nobody offers anything more: whoever stands by finds out by itself."""
    aside = place.aside(longest_s=0.6)
    aside.offer(place.hang)
    time.sleep(0.3)
    aside.offer(fine)
    wait_until(lambda: len(place.published) == 1)
    assert place.published[0].waited_s > 0.1


def test_when_all_hang_everything_is_dropped_until_one_comes_back(place: Place) -> None:
    aside = place.aside(longest_s=0.2, most_waiting=5)
    for number in range(THREADS):
        aside.offer(place.hang)
        wait_until(lambda number=number: aside.counts().late == number + 1)  # type: ignore[misc]
    for _ in range(20):
        aside.offer(fine)
    assert aside.counts().full == 15
    wait_until(lambda: aside.counts().late == THREADS + 5)
    assert aside.counts() == Counts(offered=THREADS + 20, full=15, late=THREADS + 5)
    place.goes_on.set()
    aside.offer(fine)
    wait_until(lambda: aside.counts().in_flight == 0)
    assert aside.counts().published == 1


def test_no_more_is_held_in_memory_than_may_wait(place: Place) -> None:
    class Item:
        def __call__(self) -> None:
            place.hang()

    aside = place.aside(longest_s=LONG_S, most_waiting=7)
    items: weakref.WeakSet[Item] = weakref.WeakSet()
    most = 0
    for _ in range(500):
        item = Item()
        items.add(item)
        aside.offer(item)
        del item
        gc.collect(0)
        most = max(most, len(items))
    assert most <= 7 + THREADS
    assert aside.counts().full == 500 - aside.counts().in_flight >= 500 - 7 - THREADS


def test_there_are_never_more_threads(place: Place) -> None:
    aside = place.aside(longest_s=0.02)
    for _ in range(10 * THREADS):
        aside.offer(place.hang)
        time.sleep(0.01)
        assert len(threads()) == THREADS


def test_closing_ends_what_waits_and_the_threads(place: Place) -> None:
    aside = place.aside()
    for _ in range(20):
        aside.offer(slow)
    assert aside.close().published == 20
    wait_until(lambda: not threads())
    aside.offer(fine)
    assert aside.counts() == Counts(offered=21, published=20, full=1)


def test_closing_does_not_wait_for_what_hangs(place: Place) -> None:
    aside = place.aside()
    for _ in range(20):
        aside.offer(place.hang)
    begun = time.monotonic()
    assert aside.close() == Counts(offered=20, late=20)
    assert time.monotonic() - begun < 10
    place.goes_on.set()
    wait_until(lambda: not threads())
    assert aside.counts() == Counts(offered=20, late=20)
    assert place.published == []


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from(["fine", "raises", "slow", "hang"]), max_size=60).map(tuple), min_size=1, max_size=4
    )
)
def test_whatever_happens_everything_is_counted_once(floods: list[tuple[str, ...]]) -> None:
    place = Place()
    aside = place.aside(longest_s=0.01, most_waiting=10)
    kinds: dict[str, Doing] = {"fine": fine, "raises": raises, "slow": slow, "hang": place.hang}

    def flood(what: tuple[str, ...]) -> None:
        for kind in what:
            aside.offer(kinds[kind])
            assert 0 <= aside.counts().in_flight <= 10 + THREADS

    flooding = [threading.Thread(target=flood, args=(what,)) for what in floods]
    for thread in flooding:
        thread.start()
    for thread in flooding:
        thread.join()
    place.goes_on.set()
    counts = aside.close()
    place.leave()
    assert counts.offered == sum(map(len, floods)) == counts.published + counts.full + counts.late + counts.failed
    assert counts.published == len(place.published)
    assert counts.failed <= len(place.complaints)
