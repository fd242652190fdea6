"""Several judges: their leanings are taken off where they can be told, and never invented."""

import random
from statistics import fmean

import pytest

from tipbench.bench.judge.settle import ENOUGH_SHARED, consensus


def _given(
    leanings: dict[str, float], seen: dict[str, range], noise: float = 0.0
) -> dict[str, dict[tuple[str, int], dict[str, float]]]:
    drawn = random.Random(1)
    worth = {number: drawn.uniform(1, 5) for number in range(200)}
    return {
        judge: {
            (f"run-{number // 5}", number): {"tone": worth[number] + leaning + drawn.gauss(0, noise)}
            for number in seen[judge]
        }
        for judge, leaning in leanings.items()
    }


def test_one_judge_is_taken_at_its_word() -> None:
    given = _given({"ana": 0.7}, {"ana": range(50)})
    found = consensus(given, ["tone"])
    assert found.scores == given["ana"]
    assert found.leanings == {"ana": {"tone": 0.0}}
    assert found.unlinked_groups == ()


def test_leanings_are_found_although_the_judges_saw_different_candidates() -> None:
    given = _given({"strict": -1.0, "lenient": 1.0}, {"strict": range(60), "lenient": range(40, 200)})
    found = consensus(given, ["tone"])
    assert found.leanings["lenient"]["tone"] - found.leanings["strict"]["tone"] == pytest.approx(2.0)
    truth = _given({"true": 0.0}, {"true": range(200)})["true"]
    shift = {item: found.scores[item]["tone"] - truth[item]["tone"] for item in found.scores}
    assert max(shift.values()) - min(shift.values()) < 1e-8, "all candidates on one scale"


def test_the_mean_of_all_scores_stays() -> None:
    given = _given({"a": -0.5, "b": 0.3, "c": 0.9}, {"a": range(80), "b": range(40, 120), "c": range(100, 200)}, 0.4)
    found = consensus(given, ["tone"])
    total = sum(found.leanings[judge]["tone"] * len(items) for judge, items in given.items())
    assert total == pytest.approx(0, abs=1e-6)


def test_judges_who_share_too_little_are_left_as_they_are_and_named() -> None:
    last = 50 + ENOUGH_SHARED - 1
    given = _given({"ana": 0.0, "ben": 1.0}, {"ana": range(last), "ben": range(50, 120)})
    found = consensus(given, ["tone"])
    assert found.unlinked_groups == (("ana",), ("ben",))
    assert found.leanings == {"ana": {"tone": 0.0}, "ben": {"tone": 0.0}}
    both = ("run-10", 52)
    assert found.scores[both]["tone"] == fmean(given[judge][both]["tone"] for judge in ("ana", "ben"))


def test_judges_are_linked_through_a_third() -> None:
    given = _given({"a": 0.0, "b": 0.5, "c": 1.0}, {"a": range(50), "b": range(30, 90), "c": range(70, 120)})
    found = consensus(given, ["tone"])
    assert found.unlinked_groups == ()
    assert found.leanings["c"]["tone"] - found.leanings["a"]["tone"] == pytest.approx(1.0, abs=1e-6)
