"""The recommender with policies that keep time, remember what was shown, and have a prior."""

from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest

from tests.recommender.making import NOON, Clock, a_profile, a_recommender, a_request, a_reward, candidates
from tests.recommender.prior.priors import means, prior_content
from tipbench.core.errors import InvalidInput, NotFound
from tipbench.recommender.features.v3 import NAMES
from tipbench.recommender.log.decisions import DecisionLog
from tipbench.recommender.log.segmented_log import entries
from tipbench.recommender.policies.catalog import POLICIES, fitted_until, identity_of, policy_of
from tipbench.recommender.policies.posterior import WeightedSums
from tipbench.recommender.recommender import Recommender, _digest
from tipbench.recommender.replay.evaluation import evaluate, train
from tipbench.recommender.replay.rounds import load_rounds
from tipbench.recommender.store.files import FileStore
from tipbench.recommender.store.interface import Key

NAME = "ucb/v3"


def served_days(recommender: Recommender, clock: Clock, count: int = 12) -> None:
    """Events hours apart, some rewarded late, out of order, or never."""
    waiting: list[str] = []
    for number in range(count):
        clock.now = NOON + number * 7_200
        answer = recommender.score(NAME, a_request(f"e{number}", hour=number % 24, profile=a_profile()))
        waiting.append(answer.event_id)
        if number % 3 == 2:
            recommender.reward(NAME, a_reward(waiting.pop(), 0.5))
            recommender.reward(NAME, a_reward(waiting.pop(0), -0.5))


def test_a_replay_of_its_own_log_gives_the_state_that_it_has(tmp_path: Path) -> None:
    clock = Clock()
    store = FileStore(tmp_path / "state", durable=False)
    recommender = a_recommender(tmp_path, clock, store)
    served_days(recommender, clock)
    stored = store.read_state(Key("u1", NAME))
    assert stored
    state = WeightedSums.from_data(stored.state)
    rounds = load_rounds(tmp_path / "decisions")
    known = train(rounds, POLICIES[NAME], np.ones(len(rounds), dtype=np.bool_))
    replayed = known.states.by_user[0]
    assert isinstance(replayed, WeightedSums)
    assert (replayed.n, replayed.at_ms) == (state.n, state.at_ms) == (8, state.at_ms)
    np.testing.assert_allclose(replayed.sums, state.sums, atol=1e-9)


def test_what_was_shown_makes_tired_also_without_a_reward(tmp_path: Path) -> None:
    clock = Clock()
    store = FileStore(tmp_path / "state", durable=False)
    recommender = a_recommender(tmp_path, clock, store)
    for number in range(2):
        clock.now = NOON + number * 3600
        recommender.score(NAME, a_request(f"e{number}", of=candidates(1)))
    seen = [event.features for event in store.events(Key("u1", NAME))]
    tired = [features[NAMES.index("tiredness")] for features in seen if features]
    assert tired == pytest.approx([0.0, np.exp(-1 / 24) / 4])


def test_a_request_that_is_sent_again_gets_the_whole_ranking(tmp_path: Path) -> None:
    clock = Clock()
    recommender = a_recommender(tmp_path, clock)
    first = recommender.score(NAME, a_request())
    clock.now += 3600
    assert recommender.score(NAME, a_request()) == replace(first, repeated=True)


def test_a_request_from_before_candidates_were_judged_is_the_same_request() -> None:
    hostile = [one.model_copy(update={"id": f'{one.id},"judged":null'}) for one in candidates(2)]
    for request in (a_request(), a_request(of=hostile)):
        before = request.model_dump_json(exclude={"candidates": {"__all__": {"judged"}}})
        assert _digest(request) == blake2b(before.encode(), digest_size=16).hexdigest()
    judged = a_request(of=[candidates(1)[0].model_copy(update={"judged": 0.5})])
    assert _digest(judged) != _digest(a_request(of=candidates(1)))


def with_prior(folder: Path, clock: Clock, **changes: object) -> tuple[Recommender, str]:
    store = FileStore(folder / "state", durable=False)
    identity = f"{NAME}@{store.priors.put(prior_content(**changes))}"
    decisions = DecisionLog(folder / "decisions", clock)
    return Recommender(POLICIES, identity, store, decisions, clock, identity=lambda _: identity), identity


def test_a_prior_speaks_before_the_first_reward(tmp_path: Path) -> None:
    liked = candidates(4)[2]
    recommender, identity = with_prior(tmp_path, Clock(), tips={liked.id: 0.5}, mean=means(tip_reward=3.0))
    answer = recommender.score(recommender.live, a_request(of=candidates(4)))
    assert (answer.policy, f"{NAME}@{answer.prior}") == (NAME, identity)
    assert answer.ranking[0].id == liked.id
    assert recommender.score(NAME, a_request("e2", of=candidates(4))).prior == answer.prior
    [first, _] = entries(tmp_path / "decisions")
    assert first["parameters"]["prior"] == answer.prior
    stats = recommender.stats(NAME, "u1")
    assert (stats.prior, stats.parameters["prior"]) == (answer.prior, answer.prior)
    assert stats.learned["theta"]["tip_reward"] == pytest.approx(3.0)


def test_another_prior_needs_no_other_state(tmp_path: Path) -> None:
    clock = Clock()
    recommender, _ = with_prior(tmp_path, clock)
    served_days(recommender, clock, 6)
    learned = recommender.stats(NAME, "u1")
    other, _ = with_prior(tmp_path, clock, mean=means(bias=1.0))
    assert other.stats(NAME, "u1").n == learned.n == 4
    assert other.stats(NAME, "u1").learned["theta"] != learned.learned["theta"]
    served_days(a_recommender(tmp_path / "none", clock), clock, 6)
    assert a_recommender(tmp_path / "none", clock).stats(NAME, "u1").n == 4


def test_a_prior_that_is_like_none_changes_nothing(tmp_path: Path) -> None:
    with_one, _ = with_prior(tmp_path / "one", Clock())
    without = a_recommender(tmp_path / "other")
    for number in range(5):
        one, other = (each.score(NAME, a_request(f"e{number}")) for each in (with_one, without))
        assert replace(one, prior=None) == other


def test_priors_are_for_those_who_take_one(tmp_path: Path) -> None:
    priors = FileStore(tmp_path / "state", durable=False).priors
    digest = priors.put(prior_content(last_ms=77))
    policy = policy_of(f"egreedy/v3@{digest}", priors.read)
    assert (identity_of(policy), fitted_until(policy), fitted_until(POLICIES[NAME])) == (f"egreedy/v3@{digest}", 77, -1)
    with pytest.raises(InvalidInput, match="egreedy/v2 takes no prior, so there is no 'egreedy/v2@"):
        policy_of(f"egreedy/v2@{digest}", priors.read)
    with pytest.raises(NotFound, match="there is no policy 'thompson'; there are egreedy, "):
        policy_of("thompson", priors.read)
    with pytest.raises(NotFound, match="there is no prior 0000000000000000 in"):
        policy_of(f"{NAME}@{'0' * 16}", priors.read)


def test_a_replay_is_not_about_decisions_that_the_prior_was_fitted_to(tmp_path: Path) -> None:
    clock = Clock()
    served_days(a_recommender(tmp_path, clock), clock)
    rounds = load_rounds(tmp_path / "decisions")
    in_the_middle = int(np.sort(rounds.decided_ms)[5])
    found = evaluate(rounds, POLICIES[NAME], 0.5, in_the_middle)
    assert (found.learned, found.fitted, len(found.columns.rewards)) == (4, 2, 2)
