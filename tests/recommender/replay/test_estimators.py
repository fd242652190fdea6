"""Each estimator against its definition, known values and brute force; the full table is benchmarks/replay.py."""

from itertools import product

import numpy as np
import pytest
from benchmarks.parts.bandit_log import BanditLog, digits_log
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from sklearn.datasets import load_digits

from tipbench.recommender.features.interface import Floats
from tipbench.recommender.replay.estimators import Estimate, Weights, doubly_robust, estimate, ips, snips, weights

# What obp 0.5.5 says of `digits_log`; printed by `python -m benchmarks.replay`, which gives both the same arrays.
OBP = {"IPS": 0.81967318, "SNIPS": 0.82001709, "DR": 0.82102896}


@pytest.fixture(scope="module")
def digits() -> BanditLog:
    return digits_log(*load_digits(return_X_y=True))


def by_name(log: BanditLog) -> dict[str, Floats]:
    weighting = weights(log.of_action(log.logged), log.of_action(log.asked))
    of_asked = (log.asked * log.expected).sum(axis=1)
    return {
        "IPS": ips(log.reward, weighting),
        "SNIPS": snips(log.reward, weighting),
        "DR": doubly_robust(log.reward, weighting, log.of_action(log.expected), of_asked),
    }


def test_the_digits_as_a_bandit_come_out_as_with_obp(digits: BanditLog) -> None:
    assert {name: float(terms.mean()) for name, terms in by_name(digits).items()} == pytest.approx(OBP, abs=1e-8)


def test_what_the_digits_would_have_earned_is_within_the_intervals(digits: BanditLog) -> None:
    _, shown = load_digits(return_X_y=True)
    truth = digits.asked[np.arange(len(digits.action)), shown[len(shown) // 2 :]].mean()
    for terms in by_name(digits).values():
        low, high = estimate(terms, np.arange(len(terms))).interval
        assert low < truth < high
        assert high - low < 0.2


def test_by_hand() -> None:
    rewards, weighting = np.array([1.0, -0.5, 0.0]), weights(np.array([0.5, 0.25, 0.5]), np.array([0.25, 0.5, 0.5]))
    assert weighting.values.tolist() == [0.5, 2.0, 1.0]
    assert ips(rewards, weighting).tolist() == [0.5, -1.0, 0.0]
    assert snips(rewards, weighting).mean() == pytest.approx(-0.5 / 3.5)
    terms = doubly_robust(rewards, weighting, np.array([0.5, 0.0, 0.0]), np.array([0.2, 0.3, 0.4]))
    assert terms.tolist() == pytest.approx([0.45, -0.7, 0.4])
    assert weighting.largest == 2.0
    assert weighting.effective_sample == pytest.approx(3.5**2 / 5.25)


def test_the_mean_over_everything_that_could_have_been_logged_is_the_truth() -> None:
    """All eight logs of three decisions between two actions, each as likely as it is."""
    logged = np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
    asked = np.array([[0.3, 0.7], [1.0, 0.0], [0.5, 0.5]])
    earned = np.array([[1.0, -0.5], [0.2, 0.9], [-1.0, 0.0]])
    wrong = np.array([[5.0, -3.0], [0.0, 0.0], [1.0, 2.0]])  # a model that knows nothing
    truth = (asked * earned).sum(axis=1).mean()
    found = {"ips": 0.0, "dr": 0.0}
    rows = np.arange(3)
    for actions in product((0, 1), repeat=3):
        likely = logged[rows, actions].prod()
        weighting = weights(logged[rows, actions], asked[rows, actions])
        rewards = earned[rows, actions]
        found["ips"] += likely * ips(rewards, weighting).mean()
        of_asked = (asked * wrong).sum(axis=1)
        found["dr"] += likely * doubly_robust(rewards, weighting, wrong[rows, actions], of_asked).mean()
    assert found == pytest.approx({"ips": truth, "dr": truth})


def test_a_choice_that_could_not_be_made_has_no_weight() -> None:
    for logged in (0.0, -0.1, np.nan):
        with pytest.raises(ValueError, match="a choice with probability 0"):
            weights(np.array([0.5, logged]), np.array([0.5, 0.5]))


def test_nothing_is_known_where_the_asked_one_would_have_chosen_otherwise_every_time() -> None:
    weighting = weights(np.array([0.5, 0.5]), np.zeros(2))
    assert np.isnan(snips(np.ones(2), weighting)).all()
    assert (weighting.effective_sample, weighting.largest) == (0.0, 0.0)
    assert Weights(np.empty(0)).largest == 0.0


NUMBERS = st.floats(-2, 2, allow_subnormal=False)


@given(st.data(), st.integers(2, 30))
def test_the_error_is_how_far_the_mean_moves_without_one_user(data: st.DataObject, count: int) -> None:
    terms = data.draw(arrays(np.float64, count, elements=NUMBERS))
    users = data.draw(arrays(np.int64, count, elements=st.integers(0, 5)))
    found = estimate(terms, users)
    known = np.unique(users)
    assert found.value == terms.mean()
    assert found.users == len(known)
    if len(known) == 1:
        assert np.isnan(found.error)
        assert np.isnan(found.interval).all()
        return
    without = np.array([terms[users != user].mean() for user in known])
    spread = (len(known) - 1) / len(known) * ((without - terms.mean()) ** 2).sum()
    assert found.error == pytest.approx(np.sqrt(spread), abs=1e-12)


@given(arrays(np.float64, st.integers(2, 40), elements=NUMBERS))
def test_where_each_user_decided_once_it_is_the_interval_of_a_mean(terms: Floats) -> None:
    found = estimate(terms, np.arange(len(terms)))
    assert found.error == pytest.approx(stats.sem(terms), abs=1e-12)
    quantile = stats.t.ppf(0.975, len(terms) - 1)
    assert found.margin == pytest.approx(quantile * stats.sem(terms), rel=1e-3, abs=1e-12)


@given(arrays(np.float64, 12, elements=NUMBERS), st.integers(1, 5))
def test_saying_everything_twice_makes_nobody_surer(terms: Floats, times: int) -> None:
    users = np.arange(12) // 3
    again = estimate(np.tile(terms, times), np.tile(users, times))
    assert again == pytest.approx(estimate(terms, users), abs=1e-9)


@settings(max_examples=50)
@given(
    arrays(np.float64, 20, elements=st.floats(-1, 1, allow_subnormal=False)),
    arrays(np.float64, 20, elements=st.floats(0.05, 1)),
    arrays(np.float64, 20, elements=st.floats(0, 1)),
    st.floats(-3, 3),
)
def test_snips_moves_with_its_rewards_and_never_leaves_them(
    rewards: Floats, logged: Floats, asked: Floats, shift: float
) -> None:
    weighting = weights(logged, asked)
    if weighting.values.mean() < 1e-6:
        return
    value = snips(rewards, weighting).mean()
    assert rewards.min() - 1e-9 <= value <= rewards.max() + 1e-9
    assert snips(rewards + shift, weighting).mean() == pytest.approx(value + shift, abs=1e-9)
    assert 1 - 1e-9 <= weighting.effective_sample <= 20 + 1e-9


def test_the_error_of_snips_is_how_it_scatters() -> None:
    """2,000 logs of 60 users; the first-order expansion is what its error rests on."""
    chance = np.random.Generator(np.random.PCG64(3))
    found: list[Estimate] = []
    for _ in range(2000):
        taste = np.repeat(chance.normal(0, 0.3, 60), 10)  # decisions of one user are alike
        rare = chance.random(600) < 0.2
        weighting = weights(np.where(rare, 0.2, 0.8), np.where(rare, 0.7, 0.3))
        rewards = 0.5 * rare + taste + chance.normal(0, 0.5, 600)
        found.append(estimate(snips(rewards, weighting), np.arange(600) // 10))
    scatter = np.std([one.value for one in found])
    assert np.mean([one.error for one in found]) == pytest.approx(scatter, rel=0.06)
    assert np.mean([one.interval[0] <= 0.35 <= one.interval[1] for one in found]) == pytest.approx(0.95, abs=0.02)


def test_a_model_or_normalising_makes_it_surer_than_weights_alone(digits: BanditLog) -> None:
    errors = {name: estimate(terms, np.arange(len(terms))).error for name, terms in by_name(digits).items()}
    assert max(errors["DR"], errors["SNIPS"]) < errors["IPS"] / 1.5
