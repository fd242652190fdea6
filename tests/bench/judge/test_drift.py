"""What anchors tell: faithful judges count, drifting ones are found out; the full simulation is benchmarks/drift.py."""

import json
import random
from collections.abc import Sequence

import pytest
from benchmarks.drift import Judge, at_random, batch, faithful, flat, items_until_held, quarantined, shifted

from tipbench.bench.judge.drift import (
    ENOUGH_REPEATS,
    AnchorReferences,
    Drift,
    assess,
    borrowable,
    is_new,
    read_drift,
)
from tipbench.bench.judge.sample import ANCHORS
from tipbench.bench.records import Batch, Verdict
from tipbench.bench.suites.anchors import ENOUGH_ANCHORS
from tipbench.bench.suites.load import load_suite
from tipbench.bench.tracking.batches import AppliedBatch
from tipbench.bench.tracking.interface import StoredRun

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
    few = batch(drawn, flat, SUITE.anchors, SUITE.rubric, ENOUGH_ANCHORS - 1)
    alone = assess(few, SUITE.rubric, AnchorReferences((), SUITE.rubric), (), ANCHORS)
    assert (alone.assessable, alone.quarantine, alone.anchors) == (False, "", ENOUGH_ANCHORS - 1)
    earlier = batch(drawn, faithful, SUITE.anchors, SUITE.rubric, 10)
    helped = assess(few, SUITE.rubric, AnchorReferences((), SUITE.rubric), (earlier,), ANCHORS)
    assert (helped.anchors, helped.borrowed) == (ANCHORS, ANCHORS - (ENOUGH_ANCHORS - 1))
    assert helped.quarantine


def _contradicting(scored: list[Verdict], drawn: random.Random) -> list[Verdict]:
    for verdict in scored:
        if verdict.slot.kind == "repeat":
            verdict.scores.update({name: drawn.choice((1, 5)) for name in verdict.scores})  # type: ignore[attr-defined]
    return scored


def test_a_judge_who_contradicts_itself_is_found_out_by_repeats() -> None:
    """Anchors as they should be, everything else by the throw of a die."""
    drawn = random.Random(5)
    scored = _contradicting(batch(drawn, lambda _, __, worth: worth, SUITE.anchors, SUITE.rubric, ANCHORS), drawn)
    assert (
        "the same item got scores"
        in assess(scored, SUITE.rubric, AnchorReferences((), SUITE.rubric), (), ANCHORS).quarantine
    )


@pytest.mark.parametrize("anchors", [0, ENOUGH_ANCHORS - 1])
def test_without_enough_anchors_repeats_tell_who_throws_dice(anchors: int) -> None:
    drawn = random.Random(7)

    def drift(judge: Judge, repeats: int = ENOUGH_REPEATS) -> Drift:
        scored = batch(drawn, judge, SUITE.anchors, SUITE.rubric, anchors)
        twice = [verdict for verdict in scored if verdict.slot.kind == "repeat"][:repeats]
        others = [verdict for verdict in scored if verdict.slot.kind != "repeat"]
        return assess([*others, *twice], SUITE.rubric, AnchorReferences((), SUITE.rubric), (), ANCHORS)

    found = [drift(at_random) for _ in range(40)]
    assert sum("the same item got scores" in one.quarantine for one in found) >= 38
    assert not any(one.assessable for one in found), "nothing is said about anchors"
    assert sum(not drift(faithful).quarantine for _ in range(100)) >= 94
    few = drift(at_random, ENOUGH_REPEATS - 1)
    assert few.quarantine == ""
    assert {one.repeats.n for one in few.repeats.values()} == {ENOUGH_REPEATS - 1}
    assert read_drift(json.loads(json.dumps(found[0].as_data()))) == found[0]
    assert drift(at_random, 0).repeats == {}


def test_a_few_repeats_hold_up_nobody_and_earlier_ones_are_borrowed() -> None:
    """Two scorings of one text are often a point apart; a mean over two texts says little."""
    drawn = random.Random(11)

    def scored(judge: Judge, repeats: int) -> list[Verdict]:
        return batch(drawn, judge, SUITE.anchors, SUITE.rubric, ENOUGH_ANCHORS, repeats)

    def held(verdicts: list[Verdict], earlier: Sequence[list[Verdict]] = ()) -> str:
        return assess(verdicts, SUITE.rubric, AnchorReferences((), SUITE.rubric), earlier, ANCHORS).quarantine

    assert sum(bool(held(scored(faithful, 2))) for _ in range(200)) <= 8
    few, others = (_contradicting(scored(lambda _, __, worth: worth, 2), drawn) for _ in range(2))
    many = _contradicting(scored(lambda _, __, worth: worth, ENOUGH_REPEATS - 2), drawn)
    assert held(few, [others]) == ""
    assert "the same item got scores" in held(few, [many])


def test_a_judge_who_drifts_after_the_first_batch_is_found_in_small_batches() -> None:
    for items in (20, 80):
        needed = items_until_held(SUITE, shifted("tone"), items, 60, 21)
        assert needed[len(needed) // 2] <= 80
        assert needed[int(0.95 * len(needed))] <= 160


def test_what_was_scored_before_a_hold_is_not_borrowed() -> None:
    """Otherwise a judge who read the rubric again would be put on hold for what was scored before."""

    def applied(quarantine: str = "", accepted: str = "") -> AppliedBatch:
        tags = {"tipbench.provisional": "false", "tipbench.quarantine": quarantine}
        run = StoredRun("r", "", 0, "", tags | {"tipbench.drift_accepted": accepted}, {}, {}, {}, "e")
        verdicts = tuple(batch(random.Random(1), faithful, SUITE.anchors, SUITE.rubric, ENOUGH_ANCHORS))
        return AppliedBatch(run, Batch("b", "ana", False, 0, "", 0, "", ()), verdicts, 0, {}, quarantine, accepted)

    counted, held, accepted = applied(), applied("tone: far"), applied("tone: far", "lena: fine")
    assert borrowable([counted, counted]) == [counted.verdicts] * 2
    assert borrowable([counted, held]) == []
    assert borrowable([counted, held, counted]) == [counted.verdicts]
    assert borrowable([counted, accepted]) == [accepted.verdicts, counted.verdicts]
    assert [is_new(one) for one in ([], [counted], [counted, held], [counted, accepted])] == [True, False, True, False]


def test_what_an_earlier_version_stored_is_read() -> None:
    assert read_drift({"anchors": 3, "borrowed": 0, "criteria": {}}) == Drift(3, 0, {})
