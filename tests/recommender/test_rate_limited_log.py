"""Once a minute, however often it happens."""

import logging

import pytest

from tests.recommender.making import Clock
from tipbench.recommender.log.segmented_log import RateLimitedLog

LOG = logging.getLogger("tests.seldom")


def test_what_happens_often_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    seldom = RateLimitedLog(LOG)
    for _ in range(100):
        seldom.warning("it failed", ValueError("no"))
    assert caplog.messages == ["it failed: ValueError: no"]


def test_the_next_time_it_says_how_often_it_was_silent(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    seldom = RateLimitedLog(LOG, clock)
    for pause_s in (0, 1, 58, 2, 1):
        clock.now += pause_s
        seldom.warning("it failed", ValueError("no"))
    assert caplog.messages == [
        "it failed: ValueError: no",
        "it failed: ValueError: no (2 more since the last such message)",
    ]


def test_what_it_says_is_safe_to_print_and_short(caplog: pytest.LogCaptureFixture) -> None:
    RateLimitedLog(LOG).warning("it failed", ValueError("\x1b[31m\nforged line" + "x" * 5000))
    assert "\x1b" not in caplog.messages[0]
    assert "\n" not in caplog.messages[0]
    assert len(caplog.messages[0]) < 400
