"""Signals: to the log, and to whoever listens."""

from pathlib import Path

import pytest

from tests.recommender.making import NOON, Clock
from tipbench.recommender.log.segmented_log import SegmentLog, entries
from tipbench.recommender.shadows.runner import Signal, Signals

EXPECTED = {"schema": 1, "signal": "shadow:x", "at_ms": round(NOON * 1000), "event_id": "e1"}


def test_a_signal_is_a_line_in_the_log_and_reaches_every_listener(tmp_path: Path) -> None:
    signals = Signals(SegmentLog(tmp_path, Clock()))
    heard: list[Signal] = []
    signals.subscribe(heard.append)
    signals.subscribe(heard.append)
    signals.publish("shadow:x", NOON, event_id="e1")
    signals.close()
    assert list(entries(tmp_path)) == [EXPECTED]
    assert heard == [EXPECTED, EXPECTED]


def test_listeners_need_no_log() -> None:
    signals = Signals()
    heard: list[Signal] = []
    signals.subscribe(heard.append)
    signals.publish("shadow:x", NOON, event_id="e1")
    signals.close()
    assert heard == [EXPECTED]


def test_a_listener_that_raises_keeps_it_from_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def broken(signal: Signal) -> None:
        raise RuntimeError("out of order")

    signals = Signals(SegmentLog(tmp_path, Clock()))
    heard: list[Signal] = []
    signals.subscribe(broken)
    signals.subscribe(heard.append)
    for _ in range(3):
        signals.publish("shadow:x", NOON, event_id="e1")
    signals.close()
    assert len(heard) == len(list(entries(tmp_path))) == 3
    assert caplog.messages == ["a listener to shadow:x failed: RuntimeError: out of order"]
