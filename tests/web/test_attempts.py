"""Failed attempts: an address that fails too often is told to wait; a right token never is."""

import pytest

from tests.web.small_app import Clock
from tipbench.web.attempts import LIMIT, AttemptLimiter, TooManyAttempts

HERE = "203.0.113.5"
GOOD = "good"


def check(token: str) -> str | None:
    return token if token == GOOD else None


def fail(attempts: AttemptLimiter, address: str = HERE, times: int = LIMIT) -> None:
    for number in range(times):
        assert attempts.attempt(address, f"guess {number}", check) is None


def wait_s(attempts: AttemptLimiter, address: str = HERE) -> int:
    """Seconds that one more failure is told to wait; 0: it is counted like those before."""
    try:
        attempts.record_failure(address)
    except TooManyAttempts as refused:
        return refused.wait_s
    return 0


def test_after_ten_failures_the_next_waits_until_the_first_is_five_minutes_ago(clock: Clock) -> None:
    attempts = AttemptLimiter(clock)
    fail(attempts, times=9)
    clock.now += 100
    fail(attempts, times=1)
    assert wait_s(attempts) == 200
    assert wait_s(attempts, "203.0.113.6") == 0
    clock.now += 199.5
    assert wait_s(attempts) == 1
    clock.now += 0.5
    assert wait_s(attempts) == 0


def test_a_right_token_is_let_in_from_wherever_and_whatever_came_before(clock: Clock) -> None:
    attempts = AttemptLimiter(clock)
    for _ in range(50):
        assert attempts.attempt(HERE, GOOD, check) == GOOD
        wait_s(attempts)
    with pytest.raises(TooManyAttempts):
        attempts.attempt(HERE, "revoked", check)
    assert attempts.attempt(HERE, GOOD, check) == GOOD


def test_whoever_goes_on_failing_is_not_kept_waiting_for_longer(clock: Clock) -> None:
    """A program with an old key asks every second; five minutes after its tenth failure, the next one counts again."""
    attempts = AttemptLimiter(clock)
    fail(attempts)
    for second in range(300):
        assert wait_s(attempts) == 300 - second
        clock.now += 1
    assert wait_s(attempts) == 0


def test_failures_further_apart_do_not_add_up(clock: Clock) -> None:
    attempts = AttemptLimiter(clock)
    for _ in range(50):
        assert wait_s(attempts) == 0
        clock.now += 34  # nine in five minutes


def test_memory_is_bounded(clock: Clock) -> None:
    attempts = AttemptLimiter(clock, max_addresses=100)
    for number in range(1000):
        attempts.record_failure(f"10.0.{number // 256}.{number % 256}")
    assert len(attempts) == 100


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
    attempts = AttemptLimiter(clock)
    fail(attempts, one)
    assert (wait_s(attempts, other) > 0) == together


def test_a_clock_that_is_set_back_locks_nobody_out(clock: Clock) -> None:
    attempts = AttemptLimiter(clock)
    fail(attempts)
    clock.now -= 10_000
    assert wait_s(attempts) == 0
