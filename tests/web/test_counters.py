"""Sums over processes, here all in one: what is passed to others is tested with the service's workers."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tipbench.web import counters as module
from tipbench.web.counters import SharedCounters


@contextmanager
def _limits(monkeypatch: pytest.MonkeyPatch, **limits: float) -> Iterator[None]:
    with monkeypatch.context() as patched:
        for name, limit in limits.items():
            patched.setattr(module, name, limit)
        yield


def test_every_process_adds_to_the_same_sums_and_a_successor_goes_on() -> None:
    parent = SharedCounters(3)
    first, second, third = (parent.of_process(number) for number in range(3))
    first.add(("decisions", "egreedy"))
    second.add(("decisions", "linucb"), 2.5)
    third.observe(("seconds",), size=4, position=3, amount=0.5)
    second.add(("decisions", "egreedy"))
    first.observe(("seconds",), size=4, position=1, amount=0.25)
    parent.of_process(1).add(("decisions", "linucb"))  # in place of the second, which was killed
    expected = {("decisions", "egreedy"): [2.0], ("decisions", "linucb"): [3.5], ("seconds",): [0.75, 1.0, 0.0, 1.0]}
    assert [one.sums() for one in (parent, first, second, third)] == [expected] * 4


def test_threads_lose_nothing() -> None:
    counters = SharedCounters()

    def work() -> None:
        for number in range(2000):
            counters.add(("a", str(number % 50)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(map(tuple, counters.sums().values())) == {(160.0,)}


def test_a_group_has_the_first_names_that_any_process_asks_for() -> None:
    first, second = (parent := SharedCounters(2)).of_process(0), parent.of_process(1)
    asked = [first.is_member("category", "a", 2), second.is_member("category", "b", 2)]
    assert asked == [True, True]
    assert not first.is_member("category", "c", 2)
    assert not second.is_member("category", "c", 2)
    assert first.is_member("category", "b", 2)
    assert second.is_member("another", "c", 2)
    assert parent.sums() == {}


def test_while_a_process_hangs_new_keys_are_not_counted_and_others_are(monkeypatch: pytest.MonkeyPatch) -> None:
    counters = SharedCounters()
    counters.add(("known",))
    with _limits(monkeypatch, _LOCK_TIMEOUT_S=0.0):
        monkeypatch.setattr(module, "_try_lock", lambda _: False)
        counters.add(("new",))
        counters.add(("known",))
        assert not counters.is_member("category", "a", 2)
        assert counters.sums() == {("known",): [2.0]}
        monkeypatch.undo()
    counters.add(("new",))
    assert counters.sums() == {("known",): [2.0], ("new",): [1.0]}


def test_what_has_no_room_is_logged_and_the_rest_is_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with _limits(monkeypatch, _BYTES=4096):
        counters = SharedCounters()
        for number in range(100):
            for _ in range(2):
                counters.add(("x" * 100, str(number)))
        sums = counters.sums()
    assert 10 < len(sums) < 100
    assert set(map(tuple, sums.values())) == {(2.0,)}
    assert len(caplog.messages) == 100 - len(sums)
