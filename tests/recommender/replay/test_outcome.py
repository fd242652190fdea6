"""From a log to a verdict, and all of it as data."""

from pathlib import Path

import pytest
from pydantic_core import to_json

from tests.recommender.replay.logs import log_of_chance
from tests.recommender.served_events import Clock, Serving, tip
from tipbench.core.errors import InvalidInput
from tipbench.recommender.policies.catalog import POLICIES
from tipbench.recommender.replay.outcome import replay_data, run_replay
from tipbench.recommender.simulation.outcome import arm_data
from tipbench.recommender.simulation.rollout import arm


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("decisions")
    log_of_chance(folder, 60, 80)
    return folder


def test_version_2_passes_on_a_log_of_chance(log: Path) -> None:
    found = replay_data(run_replay(log, "egreedy/v2", 0.5))
    assert found["verdict"]["passed"]
    assert found["log"]["decisions"] == 4800
    assert (found["learned"], found["evaluated"], found["users"]) == (2400, 2400, 60)
    assert found["with_profile"] == 2400
    assert found["candidate"] == arm_data(arm("egreedy/v2"))
    assert found["effective_sample"] > 200
    assert found["largest_weight"] == pytest.approx(0.1 / 0.1 + 8.5, abs=1)
    assert set(found["estimates"]) == {"IPS", "SNIPS", "DR"}
    for of in found["estimates"].values():
        assert of["value"]["mean"] - found["served"]["mean"] == pytest.approx(of["gain"]["mean"])
        assert of["gain"]["margin"] > 0


def test_one_that_sees_nothing_of_what_matters_does_not_pass(log: Path) -> None:
    assert run_replay(log, "egreedy", 0.5).verdict.status == "undecided"


def test_the_same_log_gives_the_same_bytes(log: Path) -> None:
    first, second = (to_json(replay_data(run_replay(log, "category-mean", 0.3))) for _ in range(2))
    assert first == second


def test_a_log_of_one_user_has_no_margins(tmp_path: Path) -> None:
    one = Serving(tmp_path, Clock())
    for number in range(4):
        one.serve("u1", f"e{number}", [tip(1), tip(2)])
        one.reward("u1", f"e{number}", 0.5)
    found = replay_data(run_replay(one.log, "egreedy", 0.5))
    assert found["served"] == {"mean": 0.5, "margin": None}
    assert found["with_profile"] == 0
    assert found["verdict"]["status"] == "thin"


def test_a_log_with_nothing_in_it(tmp_path: Path) -> None:
    found = replay_data(run_replay(tmp_path, "egreedy", 0.5))
    assert found["log"] == {
        "folder": str(tmp_path),
        "decisions": 0,
        "first_ms": None,
        "last_ms": None,
        "left_out": {"no_decision": 0, "no_chance": 0, "no_choice": 0, "no_reward": 0},
    }
    assert (found["estimates"], found["served"], found["verdict"]["status"]) == ({}, None, "thin")


@pytest.mark.parametrize("share", [0.0, 1.0, -1.0, 2.0, float("nan")])
def test_a_share_that_leaves_nothing_is_refused(tmp_path: Path, share: float) -> None:
    with pytest.raises(InvalidInput, match="leaves nothing to learn from"):
        run_replay(tmp_path, "egreedy", share)


@pytest.mark.parametrize("name", ["egreedy/v9", "egreedy/v2-flat", "\x1b[2J"])
def test_who_is_no_policy_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match=r"there is no policy '[^\x1b]*' to replay; there are egreedy, ") as refused:
        run_replay(tmp_path, name, 0.5)
    assert all(policy in str(refused.value) for policy in POLICIES)
