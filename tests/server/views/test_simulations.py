"""Simulations as they are shown: a gate without an incumbent is held against the live policy, verdicts are told."""

import pytest

from tests.server.views.made_recommender import GATE, RUN, MadeSimulations, a_simulation, an_outcome, made_room, record
from tipbench.core.errors import InvalidInput, StateRefused
from tipbench.core.settings import Settings
from tipbench.server.jobs.progress import Progress
from tipbench.server.jobs.simulation_asked import SimulationAsked
from tipbench.server.views.simulations import Simulations


def test_a_gate_is_held_against_who_is_live_at_that_moment() -> None:
    room = made_room()
    asked = SimulationAsked(kind="gate", candidate="egreedy/v2")
    assert room.simulations.start(asked).asked.incumbent == "egreedy"
    record(Settings(), "promote", "egreedy", "linucb", "0" * 16)
    assert room.simulations.start(asked).asked.incumbent == "linucb"
    named = SimulationAsked(kind="gate", candidate="egreedy/v2", incumbent="egreedy")
    assert room.simulations.start(named).asked.title == "egreedy/v2 against egreedy"
    record(Settings(), "promote", "linucb", "egreedy/v2", "0" * 16)
    with pytest.raises(InvalidInput, match="is both candidate and incumbent"):
        room.simulations.start(asked)


@pytest.mark.parametrize(
    ("asked", "state", "status", "passed"),
    [
        (GATE, "finished", 0, True),
        (GATE, "finished", 1, False),
        (GATE, "running", None, None),
        (GATE, "failed", 1, None),
        (RUN, "finished", 0, None),
    ],
)
def test_only_a_gate_that_was_held_has_a_verdict(asked: object, state: str, status: int | None, passed: object) -> None:
    runner = MadeSimulations(
        {"s1": a_simulation("s1", state, asked, exit_status=status)}, {"s1": Progress(kept_as="0" * 16)}
    )
    found = Simulations(runner, lambda: "egreedy").one("s1")
    assert found.passed is passed
    assert found.gate == "0" * 16


def test_the_outcome_is_read_once_it_is_there() -> None:
    runner = MadeSimulations({"s1": a_simulation("s1", "finished")}, outcomes={"s1": an_outcome()})
    simulations = Simulations(runner, lambda: "egreedy")
    assert simulations.outcome("s1").policies == ["egreedy", "linucb"]
    assert [one.job.id for one in simulations.newest(5)] == ["s1"]
    runner.outcomes["s1"] = {}
    with pytest.raises(StateRefused, match="the result of simulation s1 was stored in a format"):
        simulations.outcome("s1")
