"""What anchors tell: faithful judges count, drifting ones are found out; the full simulation is benchmarks/drift.py."""

import random

import pytest
from benchmarks.drift import Judge, at_random, batch, faithful, flat, quarantined, shifted

from tipbench.judge.drift import ENOUGH, Anchored, assess
from tipbench.judge.sample import ANCHORS
from tipbench.suites.load import load_suite

SUITE = load_suite("tip")
BATCHES = 300


def _share(judge: Judge) -> float:
    return quarantined(SUITE, judge, ANCHORS, BATCHES, 21, SUITE.rubric.tolerances)


def test_a_faithful_judge_counts() -> None:
    assert 1 - _share(faithful) >= 0.95


@pytest.mark.parametrize(
    "judge", [*(shifted(name) for name in SUITE.rubric.criteria), flat, at_random], ids=lambda judge: judge.__name__
)
def test_a_judge_that_drifts_is_found_out(judge: Judge) -> None:
    assert _share(judge) >= 0.95


def test_too_few_anchors_tell_nothing_and_earlier_ones_help_out() -> None:
    drawn = random.Random(3)
    few = batch(drawn, flat, SUITE.anchors, SUITE.rubric, ENOUGH - 1)
    alone = assess(few, SUITE.rubric, Anchored((), SUITE.rubric), (), ANCHORS)
    assert (alone.assessable, alone.quarantine, alone.anchors) == (False, "", ENOUGH - 1)
    earlier = batch(drawn, faithful, SUITE.anchors, SUITE.rubric, 10)
    helped = assess(few, SUITE.rubric, Anchored((), SUITE.rubric), (earlier,), ANCHORS)
    assert (helped.anchors, helped.borrowed) == (ANCHORS, ANCHORS - (ENOUGH - 1))
    assert helped.quarantine


def test_a_judge_who_contradicts_itself_is_found_out_by_repeats() -> None:
    """Anchors as they should be, everything else by the throw of a die."""
    drawn = random.Random(5)
    scored = batch(drawn, lambda _, __, worth: worth, SUITE.anchors, SUITE.rubric, ANCHORS)
    for verdict in scored:
        if verdict.slot.kind == "repeat":
            verdict.scores.update({name: drawn.choice((1, 5)) for name in verdict.scores})  # type: ignore[attr-defined]
    assert (
        "the same item got scores" in assess(scored, SUITE.rubric, Anchored((), SUITE.rubric), (), ANCHORS).quarantine
    )
