"""What a simulation may be asked to do."""

from typing import Any

import pytest

from tests.recommender.simulation.worlds import a_request
from tipbench.core.errors import InvalidInput
from tipbench.recommender.simulation.subprocess_runner import SimulationRequest
from tipbench.server.jobs.simulation_asked import built_in_world


def test_it_crosses_from_one_process_to_the_other() -> None:
    request = a_request(world=built_in_world(), http=True, first_seed=7)
    again = SimulationRequest.model_validate_json(request.model_dump_json())
    assert again == request
    assert again.plan() == request.plan()


def test_a_gate_adds_what_it_needs() -> None:
    plan = a_request("egreedy/v2", "egreedy", kind="gate", seeds=10).plan()
    assert [arm.name for arm in plan.arms] == [
        *("egreedy/v2", "egreedy", "category-mean", "most-popular", "egreedy, again", "egreedy/v2-placebo")
    ]
    assert plan.lives == 20
    assert plan.decisions == 6 * 20 * 12


@pytest.mark.parametrize(
    ("names", "changes", "told"),
    [
        (("egreedy", "egreedy"), {}, "name each policy once; given: egreedy, egreedy"),
        (("egreedy", "nobody"), {}, "no policy 'nobody'"),
        (("egreedy",), {"offered": 13}, "13 candidates can't be offered from a pool of 12 tips"),
        (("egreedy",), {"seeds": 100_000, "steps": 1000}, "200,000,000 decisions are too many"),
        (
            ("egreedy",),
            {"world": built_in_world(), "seeds": 100_000, "steps": 21},
            "1,000,000 lives take too much memory",
        ),
        (("egreedy",), {"world": built_in_world(), "steps": 100_000, "seeds": 1, "offered": 61}, "a pool of 60 tips"),
        (("egreedy", "linucb"), {"kind": "gate", "seeds": 9}, "9 seeds are too few for a gate; use 10 or more"),
        (("egreedy", "egreedy"), {"kind": "gate", "seeds": 30}, "egreedy is both candidate and incumbent; name two"),
        (("egreedy",), {"kind": "gate", "seeds": 30}, "one candidate and one incumbent"),
    ],
)
def test_what_does_not_fit_together(names: tuple[str, ...], changes: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        a_request(*names, **changes).plan()


def test_a_life_that_does_not_fit_into_memory() -> None:
    world = built_in_world()
    large = world.model_copy(update={"pool": world.pool.model_copy(update={"tips_per_category": 1000})})
    with pytest.raises(InvalidInput, match="3,000 steps with a pool of 5,000 tips take too much memory"):
        a_request("egreedy", world=large, steps=3000).plan()
