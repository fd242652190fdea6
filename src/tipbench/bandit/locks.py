"""Locks on files whose holder may be frozen: waited for, and not for ever."""

import fcntl
import time

from tipbench.errors import StoreUnreachable

PATIENCE_S = 5.0
_LOOK_EVERY_S = 0.0002  # seldomer, and whoever just had it gets it again before others


def wait_for_lock(file: int, lock: int, what: str, until: float) -> None:
    """`until` is on the monotonic clock."""
    while True:
        try:
            return fcntl.flock(file, lock | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise is_held(what) from None
        time.sleep(_LOOK_EVERY_S)


def is_held(what: str) -> StoreUnreachable:
    return StoreUnreachable(
        f"somebody else has held {what} for {PATIENCE_S:.0f} s; try again, and see whether a process is frozen"
    )
