"""How many requests an engine gets at once, and what happens when it says that it is busy."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from tipbench.core.errors import EngineBusy, GenerationFailed

_Result = TypeVar("_Result")
_MOST_TRIES = 10
_LONGEST_PAUSE_S = 60.0


class Throttle:
    """How many may be on their way: half as many after each "busy", one more after a round without any."""

    def __init__(self, most: int, sleep: Callable[[float], None] = time.sleep) -> None:
        self.limit = most
        self._most = most
        self._sleep = sleep
        self._running = 0
        self._good = 0
        self._changed = threading.Condition()

    def run(self, work: Callable[[], _Result]) -> _Result:
        """Does the work when it is its turn; tries again when the engine was busy, after as long as it asked for."""
        for tried in range(_MOST_TRIES):
            self._enter()
            try:
                result = work()
            except EngineBusy as busy:
                self._leave(good=False)
                self._sleep(min(busy.retry_after_s or 0.5 * 2**tried, _LONGEST_PAUSE_S))
            except BaseException:
                self._leave(good=True)
                raise
            else:
                self._leave(good=True)
                return result
        raise GenerationFailed(f"the engine was busy {_MOST_TRIES} times in a row")

    def _enter(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._running < self.limit)
            self._running += 1

    def _leave(self, good: bool) -> None:
        with self._changed:
            self._running -= 1
            if not good:
                self.limit, self._good = max(1, self.limit // 2), 0
            else:
                self._good += 1
                if self._good >= self.limit and self.limit < self._most:
                    self.limit, self._good = self.limit + 1, 0
            self._changed.notify_all()
