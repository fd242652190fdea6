"""Enough evidence, and for the candidate: what it takes to pass."""

import numpy as np
import pytest

from tests.recommender.replay.logs import some_rounds
from tipbench.recommender.replay.evaluation import DR, Columns, Evaluation
from tipbench.recommender.replay.verdict import Verdict, judge


def verdict(asked: float, gain: float, users: int = 20, decisions: int = 600) -> Verdict:
    """Half of the logged choices are the candidate's as likely as `asked`, and earn so much more than the others."""
    chance = np.random.Generator(np.random.PCG64(1))
    liked = np.arange(decisions) % 2 == 0
    nothing = np.zeros(decisions)
    columns = Columns(
        users=np.arange(decisions) % users,
        rewards=gain * liked + chance.normal(0, 0.2, decisions),
        logged=np.full(decisions, 0.5),
        target=np.where(liked, asked, 1 - asked),
        expected_logged=nothing,
        expected_target=nothing,
    )
    found, said = judge(Evaluation(some_rounds([0] * (2 * decisions)), decisions, columns, 0))
    assert found is not None
    return said


def test_a_candidate_that_earns_more_passes() -> None:
    said = verdict(asked=0.9, gain=0.5)
    assert said.passed
    assert said.reason.startswith(
        f"the candidate would have earned more: by {DR} the candidate's gain per decision over what was served is +0."
    )


def test_one_that_earns_less_fails() -> None:
    said = verdict(asked=0.9, gain=-0.5)
    assert said.status == "failed"
    assert said.reason.startswith("the candidate would have earned less: ")


@pytest.mark.parametrize("gain", [0.0, 0.04])
def test_one_that_may_earn_more_or_less_is_undecided(gain: float) -> None:
    said = verdict(asked=0.9, gain=gain)
    assert said.status == "undecided"
    assert not said.passed
    assert said.reason.startswith("the log can't tell whether the candidate earns more or less: ")


def test_one_that_earns_more_by_too_little_evidence_is_too_thin() -> None:
    said = verdict(asked=1.0, gain=0.5, decisions=200)
    assert said == Verdict(
        "thin",
        "the evidence is too thin: an effective sample of 100, and 200 are needed; it would take about 400 more "
        "decisions",
    )
    assert not said.passed


def test_few_users_are_too_few_however_many_decisions() -> None:
    assert verdict(asked=0.9, gain=0.5, users=9) == Verdict(
        "thin", "the evidence is too thin: decisions for 9 users, and 10 are needed"
    )
    assert verdict(asked=0.9, gain=0.5, users=10).passed


def test_nobody_can_tell_where_it_would_have_made_none_of_the_choices() -> None:
    columns = Columns(np.arange(3), np.ones(3), np.full(3, 0.5), *np.zeros((3, 3)))
    _, said = judge(Evaluation(some_rounds([0, 1, 2]), 0, columns, 0))
    assert said.status == "thin"
    assert "how many more decisions it would take is unknown" in said.reason


def test_nothing_to_go_by() -> None:
    found, said = judge(Evaluation(some_rounds([]), 0, Columns(np.empty(0, dtype=np.intp), *np.empty((5, 0))), 0))
    assert found is None
    assert said.status == "thin"
    assert "no decision of the log can be replayed" in said.reason
