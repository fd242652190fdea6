"""Waits for what other threads do, and not a moment longer."""

import time
from collections.abc import Callable

LONG_S = 20.0  # on a machine that has much else to do


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG_S
    while not true():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.002)
