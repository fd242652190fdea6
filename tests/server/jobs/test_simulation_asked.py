"""What may be asked of a simulation, and the command that it becomes."""

from typing import Any

import pytest
from pydantic import ValidationError

from tipbench.core.errors import InvalidInput
from tipbench.server.jobs.simulation_asked import SimulationAsked


def asked(**given: Any) -> SimulationAsked:
    return SimulationAsked.model_validate(given)


def test_a_run_and_a_gate_as_commands() -> None:
    run = asked(kind="run", policies=["egreedy", "linucb"], seeds=5)
    numbers = ("--seeds", "5", "--first-seed", "10000", "--steps", "200", "--offered", "10")
    assert run.arguments == ("sim", "run", "--policies=egreedy,linucb", *numbers)
    assert run.title == "egreedy, linucb"
    gate = asked(kind="gate", candidate="egreedy/v2", incumbent="egreedy", first_seed=7)
    assert gate.arguments[:4] == ("sim", "gate", "--candidate=egreedy/v2", "--incumbent=egreedy")
    assert gate.arguments[4:] == ("--seeds", "30", "--first-seed", "7", "--steps", "200", "--offered", "10")
    assert gate.title == "egreedy/v2 against egreedy"


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"kind": "both", "policies": ["egreedy"]},
        {"kind": "run"},
        {"kind": "run", "policies": []},
        {"kind": "run", "policies": ["egreedy"], "candidate": "linucb"},
        {"kind": "gate", "policies": ["egreedy"]},
        {"kind": "gate", "incumbent": "egreedy"},
        {"kind": "gate", "candidate": ""},
        {"kind": "gate", "candidate": "x" * 81},
        {"kind": "run", "policies": ["egreedy"], "seeds": "5"},
        {"kind": "run", "policies": ["egreedy"], "seeds": 5.0},
        {"kind": "run", "policies": ["egreedy"], "seeds": True},
        {"kind": "run", "policies": ["egreedy"], "steps": 0},
        {"kind": "run", "policies": ["egreedy"], "offered": 201},
        {"kind": "run", "policies": ["egreedy"], "first_seed": -1},
        {"kind": "run", "policies": ["egreedy"], "world": "/etc/passwd"},
    ],
)
def test_anything_odd_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        asked(**given)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"kind": "run", "policies": ["egreedy", "--out=/tmp/x"]}, "there is no policy '--out=/tmp/x' to simulate"),
        ({"kind": "run", "policies": ["egreedy", "egreedy"]}, "name each policy once"),
        ({"kind": "gate", "candidate": "egreedy", "incumbent": "egreedy"}, "is both candidate and incumbent"),
        ({"kind": "gate", "candidate": "linucb", "incumbent": "egreedy", "seeds": 2}, "too few for a gate"),
        ({"kind": "run", "policies": ["egreedy"], "seeds": 100_000, "steps": 1000}, "too many for one simulation"),
    ],
)
def test_what_does_not_fit_together_is_told(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        asked(**given).check()
