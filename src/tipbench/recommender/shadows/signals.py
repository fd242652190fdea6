"""Signals: what happened beside the answers, as lines of JSON in a folder, and for whoever listens in this process."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from tipbench.recommender.log.segmented_log import SegmentLog
from tipbench.recommender.seldom import RateLimitedLog

SCHEMA = 1
Signal = Mapping[str, Any]
_log = logging.getLogger(__name__)


class Signals:
    def __init__(self, log: SegmentLog | None = None) -> None:
        """Without a log they are for listeners only."""
        self._log = log
        self._listeners: list[Callable[[Signal], None]] = []
        self._seldom = RateLimitedLog(_log)

    def subscribe(self, listener: Callable[[Signal], None]) -> None:
        """It is called in the thread that publishes. One that takes long costs later signals, and never an answer."""
        self._listeners.append(listener)

    def publish(self, name: str, at: float, **content: Any) -> None:
        """First to the log. A listener that raises is told of, and has received it all the same."""
        signal = {"schema": SCHEMA, "signal": name, "at_ms": round(at * 1000), **content}
        if self._log:
            self._log.append(signal)
        for listener in self._listeners:
            try:
                listener(signal)
            except Exception as error:  # noqa: BLE001 - it is told, and others are to hear the signal too
                self._seldom.say(f"a listener to {name} failed", error)

    def close(self) -> None:
        if self._log:
            self._log.close()
