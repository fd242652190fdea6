"""Propensities, and draws that keep to them."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from tipbench.recommender.policies.choosing import EventRng, draw_choice, epsilon_greedy_propensities

scores_of_any_kind = st.lists(st.floats(-100, 100), min_size=1, max_size=200).map(np.array)


@given(scores=scores_of_any_kind, epsilon=st.floats(0, 1))
def test_propensities_sum_to_one(scores: np.ndarray, epsilon: float) -> None:
    propensities = np.array(epsilon_greedy_propensities(scores.tolist(), epsilon))
    assert abs(propensities.sum() - 1) < 1e-12
    assert (propensities >= epsilon / len(scores)).all()
    assert propensities[scores.argmax()] == propensities.max()


def test_the_best_share_what_the_best_gets() -> None:
    found = epsilon_greedy_propensities([0.1, 0.7, 0.7 - 1e-12, 0.2], 0.2)
    np.testing.assert_allclose(found, [0.05, 0.45, 0.45, 0.05])


@given(scores=scores_of_any_kind, epsilon=st.floats(0, 1), at=st.floats(0, 1, exclude_max=True))
def test_what_can_not_be_chosen_never_is(scores: np.ndarray, epsilon: float, at: float) -> None:
    class Fixed:
        def random(self) -> float:
            return at

    choice = draw_choice(scores, epsilon, np.zeros((len(scores), 1)), Fixed())
    assert 0 <= choice.position < len(scores)
    assert choice.propensity > 0


@pytest.mark.parametrize(
    ("scores", "epsilon"),
    [
        (np.array([0.5, 0.5, 0.5, 0.1, 0.1]), 0.1),
        (np.linspace(0, 1, 10), 0.3),
    ],
)
def test_100000_choices_are_as_frequent_as_they_are_likely(scores: np.ndarray, epsilon: float) -> None:
    generator = np.random.default_rng(20)
    features = np.zeros((len(scores), 1))
    places = [draw_choice(scores, epsilon, features, generator).position for _ in range(100_000)]
    likely = np.array(epsilon_greedy_propensities(scores.tolist(), epsilon))
    counts = np.bincount(places, minlength=len(scores))
    assert counts[likely == 0].sum() == 0
    assert chisquare(counts[likely > 0], likely[likely > 0] * 100_000).pvalue > 0.001
    tilted = likely + 0.01 * np.where(np.arange(len(scores)) == 0, 1, -1 / (len(scores) - 1))
    if (tilted > 0).all():  # so small a difference would have been seen
        assert chisquare(counts, tilted * 100_000).pvalue < 0.001


def test_the_standard_librarys_generator_will_do() -> None:
    assert draw_choice(np.array([0.0, 1.0]), 0.0, np.zeros((2, 1)), random.Random(1)).position == 1


def test_an_event_has_its_own_chance_and_always_the_same() -> None:
    first = EventRng("egreedy", "u1", "e1").random()
    assert EventRng("egreedy", "u1", "e1").random() == first == 0.43170113489769657
    others = {EventRng(*words).random() for words in (("egreedy/v2", "u1", "e1"), ("egreedy", "u", "1e1"))}
    assert len(others | {first}) == 3


def test_events_are_spread_evenly() -> None:
    draws = [EventRng("egreedy", f"u{user}", f"e{event}").random() for user in range(100) for event in range(100)]
    assert chisquare(np.histogram(draws, bins=50, range=(0, 1))[0]).pvalue > 0.001
