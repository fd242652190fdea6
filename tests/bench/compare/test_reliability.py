"""What batches say about their judges."""

from typing import Any

from tipbench.bench.compare.reliability import judged_batches
from tipbench.bench.records import Batch, Slot, Verdict
from tipbench.bench.tracking.batches import AppliedBatch
from tipbench.bench.tracking.interface import StoredRun

FIGURES = {
    "kappa": {"value": 0.8, "low": 0.6, "high": 0.9},
    "offset": {"mean": 0.1, "low": -0.2, "high": 0.4, "n": 16},
    "repeats": {"mean_difference": 0.25, "same": 0.75, "n": 8, "high": 0.5},
    "problems": (),
}


def applied(
    judge: str, at: int, provisional: bool = False, quarantine: str = "", accepted: str = "", **drift: Any
) -> AppliedBatch:
    run = StoredRun("r", "FINISHED", 0, "", {"tipbench.provisional": str(provisional).lower()}, {}, {}, {}, "1")
    slots = (Slot("1", "run", 0, "d", "s", {}), Slot("2", "", 0, "d", "s", {}, "anchor", "a1"))
    batch = Batch(f"b{at}", judge, provisional, 0, "r", 0, "", slots)
    verdicts = tuple(Verdict(slot, {"tone": 3}, {}, (), 9, "") for slot in slots)
    return AppliedBatch(run, batch, verdicts, at, drift, quarantine, accepted)


def test_batches_come_in_their_order_with_their_state() -> None:
    found = judged_batches(
        [
            applied("d", 4, quarantine="tone: too mild", accepted="lena: looked at it"),
            applied("a", 1),
            applied("b", 2, provisional=True),
            applied("c", 3, quarantine="tone: too mild"),
        ]
    )
    assert [(one.judge, one.state, one.why) for one in found] == [
        ("a", "counts", ""),
        ("b", "provisional", ""),
        ("c", "in quarantine", "tone: too mild"),
        ("d", "accepted", "lena: looked at it"),
    ]


def test_anchors_are_no_candidates_and_figures_are_taken_over() -> None:
    (found,) = judged_batches([applied("a", 1, anchors=16, criteria={"tone": FIGURES})])
    assert (found.candidates, found.anchors) == (1, 16)
    tone = found.criteria["tone"]
    assert (tone.kappa, tone.kappa_low, tone.kappa_high) == (0.8, 0.6, 0.9)
    assert (tone.offset, tone.offset_low, tone.offset_high, tone.repeats) == (0.1, -0.2, 0.4, 0.25)


def test_without_repeats_and_without_anchors() -> None:
    (found,) = judged_batches([applied("a", 1, criteria={"tone": {**FIGURES, "repeats": None}})])
    assert found.criteria["tone"].repeats is None
    assert judged_batches([applied("a", 1)])[0].criteria == {}
