"""Something that may happen a thousand times a second, said in a log once a minute."""

import logging
import threading
import time
from collections.abc import Callable

from tipbench.core.untrusted import printable

_EVERY_S = 60.0
_LONGEST = 300


class RateLimitedLog:
    """Of all its threads, one says something, and how often nobody did since the last time."""

    def __init__(self, log: logging.Logger, now: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._now = now
        self._turn = threading.Lock()
        self._next = float("-inf")
        self._unsaid = 0

    def say(self, what: str, error: Exception) -> None:
        with self._turn:
            now = self._now()
            if now < self._next:
                self._unsaid += 1
                return
            self._next = now + _EVERY_S
            unsaid, self._unsaid = self._unsaid, 0
        since = f" ({unsaid} more since this was said last)" if unsaid else ""
        self._log.warning("%s: %s%s", what, printable(f"{type(error).__name__}: {error}", _LONGEST), since)
