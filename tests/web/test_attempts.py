"""Failed attempts: an address that fails too often waits; nobody who was let in before has to."""

import pytest

from tests.web.small_app import Clock
from tipbench.web.attempts import LIMIT, Attempts

HERE = "203.0.113.5"


def _fail(attempts: Attempts, address: str = HERE, times: int = LIMIT) -> None:
    for _ in range(times):
        attempts.failed(address)


def test_the_tenth_failure_closes_the_door_for_five_minutes(clock: Clock) -> None:
    attempts = Attempts(clock)
    _fail(attempts, times=9)
    assert attempts.wait_s(HERE, "any") == 0
    clock.now += 100
    attempts.failed(HERE)
    assert attempts.wait_s(HERE, "any") == 200
    assert attempts.wait_s("203.0.113.6", "any") == 0
    clock.now += 199.5
    assert attempts.wait_s(HERE, "any") == 1
    clock.now += 0.5
    assert attempts.wait_s(HERE, "any") == 0


def test_failures_further_apart_do_not_add_up(clock: Clock) -> None:
    attempts = Attempts(clock)
    for _ in range(50):
        attempts.failed(HERE)
        clock.now += 34  # nine in five minutes
        assert attempts.wait_s(HERE, "any") == 0


def test_a_token_that_was_good_here_still_passes(clock: Clock) -> None:
    attempts = Attempts(clock)
    attempts.succeeded(HERE, "good")
    _fail(attempts)
    assert attempts.wait_s(HERE, "good") == 0
    assert attempts.wait_s(HERE, "bad") > 0


def test_a_token_that_was_good_elsewhere_does_not(clock: Clock) -> None:
    attempts = Attempts(clock)
    attempts.succeeded("203.0.113.6", "good")
    _fail(attempts)
    assert attempts.wait_s(HERE, "good") > 0


def test_memory_is_bounded(clock: Clock) -> None:
    attempts = Attempts(clock, room=100)
    for number in range(1000):
        address = f"10.0.{number // 256}.{number % 256}"
        attempts.failed(address)
        attempts.succeeded(address, "good")
        attempts.succeeded(HERE, f"token {number}")
    assert len(attempts) == 200
    _fail(attempts)
    assert attempts.wait_s(HERE, "token 999") == 0
    assert attempts.wait_s(HERE, "token 0") > 0  # a few tokens are remembered for each address


def test_an_address_that_waited_is_forgotten(clock: Clock) -> None:
    attempts = Attempts(clock)
    _fail(attempts)
    clock.now += 301
    assert attempts.wait_s(HERE, "any") == 0
    assert len(attempts) == 0


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:203.0.113.5", "203.0.113.5", True),
        ("::ffff:203.0.113.5", "::ffff:203.0.113.6", False),
        ("203.0.113.5", "203.0.113.6", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("unknown", "unknown", True),
    ],
)
def test_ipv6_counts_by_its_network(clock: Clock, one: str, other: str, together: bool) -> None:
    attempts = Attempts(clock)
    _fail(attempts, one)
    assert (attempts.wait_s(other, "any") > 0) == together


def test_a_clock_that_is_set_back_locks_nobody_out(clock: Clock) -> None:
    attempts = Attempts(clock)
    _fail(attempts)
    clock.now -= 10_000
    assert attempts.wait_s(HERE, "any") == 0
