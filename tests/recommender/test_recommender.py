"""The recommender: what it answers, what it learns, and what it remembers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.recommender.making import Clock, a_profile, a_recommender, a_request, a_reward, candidates
from tipbench.core.errors import Conflict, NotFound, StateDamaged, StateRefused
from tipbench.recommender.log.segmented_log import entries
from tipbench.recommender.policies.catalog import POLICIES, SERVED
from tipbench.recommender.policies.ridge import Ridge
from tipbench.recommender.records import Candidate, Source
from tipbench.recommender.store.files import FileStore
from tipbench.recommender.store.interface import Key, UserState

every_policy = pytest.mark.parametrize("name", POLICIES)


@every_policy
def test_a_choice_with_its_propensities(tmp_path: Path, name: str) -> None:
    answer = a_recommender(tmp_path).score(name, a_request(profile=a_profile()))
    assert answer.policy == name
    assert answer.feature_version == POLICIES[name].features.version
    assert answer.n == 0
    assert sorted(row.id for row in answer.ranking) == sorted(candidate.id for candidate in candidates(10))
    assert [row.score for row in answer.ranking] == sorted((row.score for row in answer.ranking), reverse=True)
    assert sum(row.propensity for row in answer.ranking) == pytest.approx(1)
    assert answer.propensity == next(row.propensity for row in answer.ranking if row.id == answer.chosen)


@every_policy
def test_the_same_event_gives_the_same_choice(tmp_path: Path, name: str) -> None:
    recommender = a_recommender(tmp_path)
    requests = [a_request(f"e{number}") for number in range(30)]
    first = [recommender.score(name, request) for request in requests]
    again = [recommender.score(name, request) for request in requests]
    assert [replace(answer, repeated=False) for answer in again] == first
    assert all(answer.repeated for answer in again)
    elsewhere = a_recommender(tmp_path / "elsewhere")
    assert [elsewhere.score(name, request) for request in requests] == first


@every_policy
def test_the_choice_stays_when_more_was_learned_since(tmp_path: Path, name: str) -> None:
    recommender = a_recommender(tmp_path)
    requests = [a_request(f"e{number}", profile=a_profile()) for number in range(40)]
    first = [recommender.score(name, request) for request in requests]
    for number in range(0, 40, 2):
        recommender.reward(name, a_reward(f"e{number}", 1.0 if first[number].chosen == "t3" else -1.0))
    for before, request in zip(first, requests, strict=True):
        again = recommender.score(name, request)
        assert again.repeated
        assert (again.chosen, again.propensity, again.epsilon, again.n) == (
            before.chosen,
            before.propensity,
            before.epsilon,
            before.n,
        )
        assert [row for row in before.ranking if row.id == before.chosen] == list(again.ranking)


def test_an_event_is_of_one_request_alone(tmp_path: Path) -> None:
    recommender = a_recommender(tmp_path)
    recommender.score("egreedy", a_request("e1"))
    with pytest.raises(Conflict, match="'e1' was scored for another request"):
        recommender.score("egreedy", a_request("e1", of=candidates(3)))
    recommender.score("egreedy/v2", a_request("e1", of=candidates(3)))  # to another policy it is another event
    recommender.score("egreedy", a_request("e1", user_id="u2", of=candidates(3)))


@every_policy
def test_a_reward_is_learned_once(tmp_path: Path, name: str) -> None:
    recommender = a_recommender(tmp_path)
    recommender.score(name, a_request())
    assert recommender.reward(name, a_reward()) == ("applied", 1)
    assert recommender.reward(name, a_reward()) == ("duplicate", 1)
    with pytest.raises(Conflict, match=r"already has the reward 0\.5, not -0\.5; the first"):
        recommender.reward(name, a_reward(reward=-0.5))
    stats = recommender.stats(name, "u1")
    assert (stats.n, stats.mean_reward, stats.duplicates, stats.late, stats.waiting) == (1, 0.5, 1, 0, 0)


def test_what_was_never_scored_can_not_be_rewarded(tmp_path: Path) -> None:
    recommender = a_recommender(tmp_path)
    recommender.score("egreedy", a_request())
    for policy, user, event in (("linucb", "u1", "e1"), ("egreedy", "u2", "e1"), ("egreedy", "u1", "e2")):
        with pytest.raises(NotFound, match=f"no event '{event}' of user '{user}'"):
            recommender.reward(policy, a_reward(event, user_id=user))
    assert sorted(path.name for path in (tmp_path / "state").glob("*.json")) == ["u1_egreedy.json"]


def test_a_reward_teaches_the_features_of_score_time(tmp_path: Path) -> None:
    recommender = a_recommender(tmp_path)
    request = a_request(hour=3.0, profile=a_profile())
    answer = recommender.score("egreedy/v2", request)
    recommender.reward("egreedy/v2", a_reward(reward=0.7))
    chosen = [candidate.id for candidate in request.candidates].index(answer.chosen)
    x = SERVED["egreedy/v2"].features.matrix(request)[chosen]
    user_state = FileStore(tmp_path / "state").read_state(Key("u1", "egreedy/v2"))
    assert user_state is not None
    state = Ridge.from_data(user_state.state, 12, 1.0)
    np.testing.assert_allclose(state.xx, np.outer(x, x), atol=1e-15)
    np.testing.assert_allclose(state.xr, 0.7 * x, atol=1e-15)


def test_a_late_reward_is_noted_and_not_learned(tmp_path: Path) -> None:
    clock = Clock()
    recommender = a_recommender(tmp_path, clock)
    recommender.score("egreedy", a_request("in"))
    recommender.score("egreedy", a_request("late"))
    clock.now += 7 * 86_400
    assert recommender.reward("egreedy", a_reward("in")) == ("applied", 1)
    clock.now += 1
    assert recommender.reward("egreedy", a_reward("late")) == ("late", 1)
    assert recommender.reward("egreedy", a_reward("late")) == ("late", 1)
    with pytest.raises(Conflict):
        recommender.reward("egreedy", a_reward("late", 0.1))
    stats = recommender.stats("egreedy", "u1")
    assert (stats.n, stats.late, stats.duplicates) == (1, 1, 1)
    learned = [entry["learned"] for entry in entries(tmp_path / "decisions") if entry["kind"] == "reward"]
    assert learned == [True, False]


def test_a_clock_that_was_set_back_makes_nothing_late(tmp_path: Path) -> None:
    clock = Clock()
    recommender = a_recommender(tmp_path, clock)
    recommender.score("egreedy", a_request())
    clock.now -= 30 * 86_400
    assert recommender.reward("egreedy", a_reward()).status == "applied"


def test_the_policy_that_served_an_event_gets_its_reward(tmp_path: Path) -> None:
    recommender = a_recommender(tmp_path)
    recommender.score("egreedy", a_request("e1"))
    recommender.score("linucb", a_request("e2"))
    recommender.score("egreedy/v2", a_request("e2", user_id="u2"))
    assert recommender.reward_served(a_reward("e1")) == ("egreedy", ("applied", 1))
    assert recommender.reward_served(a_reward("e2")) == ("linucb", ("applied", 1))
    assert recommender.reward_served(a_reward("e2", user_id="u2"))[0] == "egreedy/v2"
    with pytest.raises(NotFound, match="no event 'e3' of user 'u1' is known"):
        recommender.reward_served(a_reward("e3"))


def test_who_is_live_is_asked_each_time_and_rewards_go_to_whoever_served(tmp_path: Path) -> None:
    live = ["egreedy"]
    recommender = a_recommender(tmp_path, live=lambda: live[-1])
    recommender.score(recommender.live, a_request("e1"))
    live.append("egreedy/v2")
    assert recommender.score(recommender.live, a_request("e2")).policy == "egreedy/v2"
    assert recommender.reward_served(a_reward("e1"))[0] == "egreedy"
    assert recommender.reward_served(a_reward("e2"))[0] == "egreedy/v2"


def test_an_event_that_is_sent_again_after_a_promotion_is_rewarded_with_the_live_policy(tmp_path: Path) -> None:
    live = ["egreedy"]
    recommender = a_recommender(tmp_path, live=lambda: live[-1])
    recommender.score(recommender.live, a_request("e1"))
    live.append("egreedy/v2")
    assert recommender.score(recommender.live, a_request("e1")).policy == "egreedy/v2"
    assert recommender.reward_served(a_reward("e1"))[0] == "egreedy/v2"
    assert recommender.stats("egreedy", "u1").n == 0
    assert recommender.reward("egreedy", a_reward("e1")).n == 1


def test_a_policy_that_is_named_is_served_whoever_is_live(tmp_path: Path) -> None:
    def nobody() -> str:
        raise StateDamaged("the history is damaged")

    recommender = a_recommender(tmp_path, live=nobody)
    assert recommender.score("linucb", a_request("e1")).policy == "linucb"
    assert recommender.reward("linucb", a_reward("e1")).n == 1


def test_a_state_of_other_features_is_refused_and_never_padded(tmp_path: Path) -> None:
    clock = Clock()
    recommender = a_recommender(tmp_path, clock)
    recommender.score("egreedy", a_request())
    recommender.score("egreedy", a_request("unrewarded"))
    recommender.reward("egreedy", a_reward())
    store = FileStore(tmp_path / "state")
    with store.transaction(Key("u1", "egreedy")) as transaction:
        assert transaction.user_state
        transaction.put_state(replace(transaction.user_state, feature_version="v2"))
    before, logged = (tmp_path / "state" / "u1_egreedy.json").read_bytes(), list(entries(tmp_path / "decisions"))
    clock.now += 8 * 86_400
    for act in (
        lambda: recommender.score("egreedy", a_request("e2")),
        lambda: recommender.reward("egreedy", a_reward()),
        lambda: recommender.reward("egreedy", a_reward("unrewarded")),
        lambda: recommender.stats("egreedy", "u1"),
    ):
        with pytest.raises(
            StateRefused, match="was made with features 'v2', but the policy now uses 'v1'; reset the user"
        ):
            act()
    assert (tmp_path / "state" / "u1_egreedy.json").read_bytes() == before
    assert list(entries(tmp_path / "decisions")) == logged
    assert recommender.reset("u1") == ["egreedy"]
    assert recommender.score("egreedy", a_request("e2")).n == 0


def test_a_state_that_does_not_fit_its_version_is_damaged(tmp_path: Path) -> None:
    recommender = a_recommender(tmp_path)
    recommender.score("egreedy", a_request())
    with FileStore(tmp_path / "state").transaction(Key("u1", "egreedy")) as transaction:
        assert transaction.user_state
        transaction.put_state(replace(transaction.user_state, state={**transaction.user_state.state, "xr": [0.0] * 12}))
    with pytest.raises(StateDamaged, match="xr is not a list of 7 numbers; reset the user"):
        recommender.score("egreedy", a_request("e2"))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"reward_sum": 10**400}, "int too large"), ({"xr": [10**400] * 7}, "int too large")],
)
def test_numbers_that_no_float_holds_are_damage(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    recommender = a_recommender(tmp_path)
    recommender.score("egreedy", a_request())
    with FileStore(tmp_path / "state").transaction(Key("u1", "egreedy")) as transaction:
        assert transaction.user_state
        transaction.put_state(replace(transaction.user_state, state={**transaction.user_state.state, **changes}))
    with pytest.raises(StateDamaged, match=reason):
        recommender.score("egreedy", a_request("e2"))


@pytest.mark.parametrize("features", [(1.0,), (1.0,) * 12, (float("inf"),) * 7])
def test_nothing_is_learned_from_features_that_nobody_saw(tmp_path: Path, features: tuple[float, ...]) -> None:
    """One number alone would go into every sum."""
    store = FileStore(tmp_path / "state")
    recommender = a_recommender(tmp_path, store=store)
    recommender.score("egreedy", a_request())
    path = tmp_path / "state" / "u1_egreedy.json"
    with store.transaction(Key("u1", "egreedy")) as transaction:
        event = transaction.event("e1")
        assert event
        transaction.put(replace(event, features=features))
    if float("inf") in features:
        path.write_text(path.read_text().partition(',"crc"')[0].replace("Infinity", "1e999") + "}")
    before = path.read_bytes()
    with pytest.raises(StateDamaged, match="features can't come from egreedy"):
        recommender.reward("egreedy", a_reward())
    assert path.read_bytes() == before
    assert not [entry for entry in entries(tmp_path / "decisions") if entry["kind"] == "reward"]


def test_reset_forgets_what_every_policy_knows_of_one_user(tmp_path: Path) -> None:
    recommender = a_recommender(tmp_path)
    for name in POLICIES:
        for user_id in ("u1", "u2"):
            recommender.score(name, a_request(user_id=user_id))
            recommender.reward(name, a_reward(user_id=user_id))
    assert sorted(recommender.reset("u1")) == sorted(POLICIES)
    assert recommender.reset("u1") == []
    for name in POLICIES:
        assert recommender.stats(name, "u1").n == 0
        assert recommender.stats(name, "u2").n == 1
        with pytest.raises(NotFound):
            recommender.reward(name, a_reward())


def test_reset_forgets_what_a_shadow_was_given_too(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "state")
    with store.transaction(Key("u1", "egreedy-v2-shadow")) as transaction:
        transaction.put_state(UserState("v2", SERVED["egreedy/v2"].new_state().as_data()))
    assert a_recommender(tmp_path).reset("u1") == ["egreedy-v2-shadow"]
    assert store.read_state(Key("u1", "egreedy-v2-shadow")) is None


def test_about_somebody_new_nothing_is_known_yet(tmp_path: Path) -> None:
    stats = a_recommender(tmp_path).stats("egreedy/v2", "nobody")
    assert (stats.n, stats.epsilon, stats.mean_reward, stats.updated_ms) == (0, 0.3, None, None)
    assert stats.learned["lambda"] == 1.0
    assert stats.learned["condition"] == 1.0
    assert set(stats.learned["theta"].values()) == {0.0}
    assert len(stats.learned["theta"]) == 12
    assert not list((tmp_path / "state").glob("*.json"))


def test_a_policy_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no policy 'greedy'; there are egreedy, egreedy/v2, linucb"):
        a_recommender(tmp_path).score("greedy", a_request())


def test_every_decision_is_in_the_log_with_all_that_a_replay_needs(tmp_path: Path) -> None:
    recommender = a_recommender(tmp_path)
    tip = Candidate(id="t", category="inbox", source=Source(run_id="0" * 32, cell="c" * 64))
    request = a_request(of=[tip, *candidates(4)], profile=a_profile())
    answer = recommender.score("egreedy/v2", request)
    recommender.score("egreedy/v2", request)
    recommender.reward("egreedy/v2", a_reward())
    recommender.reward("egreedy/v2", a_reward())
    recommender.reset("u1")
    decision, reward, reset = entries(tmp_path / "decisions")  # what is repeated is there once
    assert decision["kind"] == "decision"
    assert (decision["policy"], decision["feature_version"], decision["n"]) == ("egreedy/v2", "v2", 0)
    assert decision["parameters"] == SERVED["egreedy/v2"].parameters
    assert decision["request"] == request.model_dump(mode="json")
    assert (decision["chosen"], decision["propensity"]) == (answer.chosen, answer.propensity)
    assert sum(decision["propensities"]) == pytest.approx(1)
    assert len(decision["scores"]) == 5
    assert (reward["kind"], reward["event_id"], reward["reward"], reward["learned"]) == ("reward", "e1", 0.5, True)
    assert (reset["kind"], reset["user_id"]) == ("reset", "u1")
    assert set(SERVED) < set(reset["policies"])
