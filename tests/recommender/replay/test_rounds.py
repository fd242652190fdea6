"""The log as rounds: what can be replayed is read as it was, and everything else is counted."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.recommender.making import a_profile, a_recommender, a_request, a_reward, candidates
from tests.recommender.served_events import Clock, Serving, tip
from tipbench.core.errors import StateDamaged
from tipbench.recommender.log.segmented_log import entries, segments
from tipbench.recommender.replay.rounds import LeftOut, Round, Rounds, load_rounds

TWO = [tip(1), tip(2)]


def everything(rounds: Rounds) -> list[Round]:
    return sorted(rounds.read(np.ones(len(rounds), dtype=np.bool_)), key=lambda one: one.row)


def test_a_round_is_the_request_and_what_came_of_it(tmp_path: Path) -> None:
    recommender = a_recommender(tmp_path)
    request = a_request(profile=a_profile(), of=candidates(4))
    answer = recommender.score("egreedy/v2", request)
    recommender.reward("egreedy/v2", a_reward(reward=-0.25))
    [one] = everything(load_rounds(tmp_path / "decisions"))
    assert one.request == request
    assert request.candidates[one.chosen].id == answer.chosen
    assert (one.propensity, one.reward, one.user) == (answer.propensity, -0.25, 0)


def test_what_is_left_out_is_counted_by_its_reason(tmp_path: Path) -> None:
    one = Serving(tmp_path, Clock())
    for event in ("e0", "e1", "e2"):
        one.serve("u1", event, TWO, "linucb")
        one.reward("u1", event, 1.0, "linucb")
    one.serve("u1", "e3", [tip(1)])
    one.reward("u1", "e3", 1.0)
    one.serve("u1", "e4", TWO)
    one.serve("u1", "e5", TWO)
    one.reward("u1", "e5", 1.0)
    [path] = segments(one.log)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[1:]))  # without the decision on e0
    rounds = load_rounds(one.log)
    assert len(rounds) == 1
    assert rounds.left_out == LeftOut(no_decision=1, no_chance=2, no_choice=1, no_reward=1)


def test_there_is_nothing_to_replay_without_a_log(tmp_path: Path) -> None:
    rounds = load_rounds(tmp_path / "nowhere")
    assert (len(rounds), rounds.left_out, everything(rounds)) == (0, LeftOut(), [])


def test_only_what_is_wanted_is_read(tmp_path: Path) -> None:
    one = Serving(tmp_path, Clock())
    for number in range(6):
        one.serve("u1", f"e{number}", TWO)
        one.reward("u1", f"e{number}", number / 10)
    rounds = load_rounds(one.log)
    found = list(rounds.read(np.array([False, True, False, False, True, True])))
    assert [one.request.event_id for one in found] == ["e1", "e4", "e5"]
    assert [one.reward for one in found] == [0.1, 0.4, 0.5]


def test_what_is_written_meanwhile_does_not_count(tmp_path: Path) -> None:
    one = Serving(tmp_path, Clock())
    one.serve("u1", "e1", TWO)
    one.reward("u1", "e1", 1.0)
    rounds = load_rounds(one.log)
    one.serve("u1", "e2", TWO)
    one.reward("u1", "e2", 1.0)
    assert [found.request.event_id for found in everything(rounds)] == ["e1"]


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        (b'"propensity":0.5', b'"propensity":0.0'),
        (b'"propensity":0.5', b'"propensity":1.5'),
        (b'"chosen":"t', b'"chosen":"x'),
        (b'"hour":9.0', b'"hour":25.0'),
    ],
)
def test_a_decision_that_can_not_be_is_told_with_its_file(tmp_path: Path, written: bytes, instead: bytes) -> None:
    one = Serving(tmp_path, Clock())
    one.serve("u1", "e1", TWO)
    one.reward("u1", "e1", 1.0)
    [path] = segments(one.log)
    content = path.read_bytes()
    assert written in content
    path.write_bytes(content.replace(written, instead))
    with pytest.raises(StateDamaged, match=r"0001.jsonl contains a line of another kind of log"):
        everything(load_rounds(one.log))


STEPS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from(["u1", "u2"]),
        st.sampled_from(["e1", "e2", "e3"]),
        st.sampled_from(["egreedy", "linucb"]),
        st.booleans(),
    ),
    max_size=14,
)


@settings(max_examples=30, deadline=None)
@given(steps=STEPS)
def test_whoever_wrote_it_and_in_whatever_order(
    steps: list[tuple[int, str, str, str, bool]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Two processes serve and reward; each event that got its reward is there once, and the rest is counted."""
    folder, clock = tmp_path_factory.mktemp("log"), Clock()
    serving = [Serving(folder, clock) for _ in range(2)]
    served: dict[tuple[str, str, str], float | None] = {}
    for process, user, event, policy, rewarded in steps:
        key = (user, event, policy)
        serving[process].serve(user, event, TWO, policy)
        served.setdefault(key, None)
        if rewarded:
            served[key] = 0.5
            serving[1 - process].reward(user, event, 0.5, policy)
    rounds = load_rounds(serving[0].log)
    found = {(one.request.user_id, one.request.event_id): one for one in everything(rounds)}
    wanted = {key[:2] for key, reward in served.items() if reward is not None and key[2] == "egreedy"}
    assert set(found) == wanted
    assert len(rounds) == len(wanted)
    logged = {
        (entry["request"]["user_id"], entry["request"]["event_id"]): entry
        for entry in entries(serving[0].log)
        if entry["kind"] == "decision" and entry["policy"] == "egreedy"
    }
    for name, one in found.items():
        assert TWO[one.chosen].id == logged[name]["chosen"]
        assert one.propensity == logged[name]["propensity"]
        assert rounds.decided_ms[one.row] == logged[name]["at_ms"]
    assert rounds.left_out == LeftOut(
        no_chance=sum(key[2] == "linucb" for key in served),
        no_reward=sum(key[2] == "egreedy" and reward is None for key, reward in served.items()),
    )
