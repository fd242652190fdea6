"""What a simulation found is read from its JSON; another form is refused in words."""

import pytest
from pydantic_core import to_json

from tests.recommender.simulation.worlds import a_plan
from tests.server.views.made_recommender import an_outcome
from tipbench.core.errors import StateRefused
from tipbench.recommender.simulation.experiment import simulate
from tipbench.recommender.simulation.outcome import outcome_data
from tipbench.server.views.simulations import read_outcome


@pytest.mark.parametrize("seeds", [1, 3])
def test_what_a_real_simulation_wrote_is_read(seeds: int) -> None:
    data = outcome_data(simulate(a_plan(seeds=seeds), 1, lambda _done: None))
    found = read_outcome(to_json(data, inf_nan_mode="null"), "it")
    assert found.policies == ["egreedy", "egreedy/v2"]
    assert (found.plan.steps, found.bins[-1], len(found.bins)) == (12, 12, 12)
    assert [one.name for one in found.personas] == ["likes-inbox", "moody"]
    reward = found.personas[0].arms["egreedy"]["reward"]
    assert reward.total == pytest.approx(12 * reward.mean)
    assert (reward.margin is None) == (seeds == 1)
    assert found.plan.seeds.last == found.plan.seeds.first + seeds - 1


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"plan": 1}', {**an_outcome(), "bins": "x"}])
def test_another_form_is_refused(content: bytes) -> None:
    with pytest.raises(
        StateRefused, match="what it found was stored in a format that this version of tipbench does not know; start"
    ):
        read_outcome(content, "what it found")
