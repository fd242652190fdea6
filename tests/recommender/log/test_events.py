"""Decisions and rewards come together; what is made of them is tested where it is read (earnings, replay)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.recommender.served_events import Clock, Serving, tip
from tipbench.core.errors import StateDamaged
from tipbench.recommender.log.decisions import Events, load_segment
from tipbench.recommender.log.segmented_log import SegmentLog, segments


class Chosen(Events):
    """Keeps what was chosen."""

    def __init__(self) -> None:
        super().__init__()
        self.chosen: list[str | None] = []

    def _add_row(self) -> None:
        self.chosen.append(None)

    def _set_decision(self, place: int, entry: Mapping[str, Any]) -> None:
        self.chosen[place] = entry["chosen"]

    def rewards(self) -> dict[str | None, float]:
        return dict(zip(self.chosen, self._reward, strict=True))


def test_a_reward_comes_to_its_decision_in_any_order(tmp_path: Path) -> None:
    one = Serving(tmp_path, Clock())
    one.serve("u1", "e1", [tip(1)])
    one.serve("u2", "e1", [tip(2)])
    one.reward("u2", "e1", -1.0)
    one.reward("u1", "e1", 0.5)
    [path] = segments(one.log)
    lines = path.read_bytes().splitlines(keepends=True)
    for order in (lines, lines[::-1], lines + lines):
        path.write_bytes(b"".join(order))
        events = Chosen()
        ends = list(load_segment(events, path))
        assert events.rewards() == {"t1": 0.5, "t2": -1.0}
        assert ends[-1] == path.stat().st_size
        assert len(ends) == len(order)


def test_the_last_decision_counts(tmp_path: Path) -> None:
    one, events = Serving(tmp_path, Clock()), Chosen()
    one.serve("u1", "e1", [tip(1)])
    [path] = segments(one.log)
    first = path.read_bytes()
    one.recommender.reset("u1")
    one.serve("u1", "e1", [tip(2)])
    path.write_bytes(path.read_bytes() + first)  # the older line is read last
    list(load_segment(events, path))
    assert events.chosen == ["t2"]


def test_another_kind_of_line_is_refused_with_its_file(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path, lambda: 0.0)
    log.append({"schema": 1, "kind": "decision", "policy": "egreedy"})
    log.close()
    with pytest.raises(StateDamaged, match=r"0001.jsonl contains a line of another kind of log"):
        list(load_segment(Chosen(), segments(tmp_path)[0]))


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        *(("decision", {"at_ms": at_ms}) for at_ms in (-5, 2**63, 10**30)),
        *(("reward", {"at_ms": at_ms}) for at_ms in (-5, 2**63)),
        *(("reward", {"reward": reward}) for reward in (1.5, -1e308, 10**400, float("nan"), float("inf"))),
    ],
)
def test_numbers_that_nobody_of_ours_writes_are_refused(tmp_path: Path, kind: str, change: dict[str, Any]) -> None:
    one = Serving(tmp_path, Clock())
    one.serve("u1", "e1", [tip(1)])
    one.reward("u1", "e1", 0.5)
    [path] = segments(one.log)
    entries = [json.loads(line) for line in path.read_bytes().splitlines()]
    edited = [{**entry, **change} if entry["kind"] == kind else entry for entry in entries]
    path.write_text("".join(f"{json.dumps(entry)}\n" for entry in edited), encoding="utf-8")
    with pytest.raises(StateDamaged, match="contains a line of another kind of log"):
        list(load_segment(Chosen(), path))
