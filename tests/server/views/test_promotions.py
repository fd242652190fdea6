"""Who is live is what the history says; whether another may follow is asked without changing anything."""

from pathlib import Path

import pytest

from tests.server.views.made_recommender import a_gate, record
from tipbench.core.errors import StateDamaged
from tipbench.core.settings import Settings
from tipbench.server.views.recommender import Promotions

LATER_MS = 1_900_000_000_000  # than all gates


def test_without_any_act_the_first_policy_is_live(home: Path) -> None:
    history = Promotions(Settings()).history()
    assert (history.live, history.acts) == ("egreedy", ())


def test_the_newest_act_comes_first(home: Path) -> None:
    promotions, settings = Promotions(Settings()), Settings()
    record(settings, "promote", "egreedy", "egreedy/v2", "0" * 16)
    assert promotions.live() == "egreedy/v2"
    record(settings, "rollback", "egreedy/v2", "egreedy")
    history = promotions.history()
    assert history.live == "egreedy"
    assert [(act.act, act.to, act.gate) for act in history.acts] == [
        ("rollback", "egreedy", None),
        ("promote", "egreedy/v2", "0" * 16),
    ]


def test_whether_a_gate_lets_its_candidate_go_live_is_told_and_changes_nothing(home: Path) -> None:
    promotions = Promotions(Settings())
    failed = a_gate(home, passed=False)
    assert f"the gate {failed} was not passed" in promotions.why_not("egreedy/v2", failed, LATER_MS)
    passed = a_gate(home)
    assert promotions.why_not("egreedy/v2", passed, LATER_MS) == ""
    assert "it was run for 'egreedy/v2', not for linucb" in promotions.why_not("linucb", passed, LATER_MS)
    assert "no policy 'nobody' can be served" in promotions.why_not("nobody", failed, LATER_MS)
    assert promotions.history().acts == ()


def test_a_history_that_does_not_hold_is_no_history(home: Path) -> None:
    (home / "recommender").mkdir()
    (home / "recommender" / "promotions.jsonl").write_text("{}\n")
    with pytest.raises(StateDamaged):
        Promotions(Settings()).live()
