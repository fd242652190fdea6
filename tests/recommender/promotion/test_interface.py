"""What a history says about who is live, and which histories can't be."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.recommender.gates import BACK, LINUCB, V2, promoted, rolled_back
from tipbench.core.errors import StateDamaged
from tipbench.recommender.promotion.interface import Act, live_history, read_acts


def test_an_act_is_written_as_agreed_and_read_back() -> None:
    data = json.loads(V2.as_json())
    assert list(data) == ["schema", "at_ms", "act", "from", "to", "gate", "replay", "candidate"]
    assert (data["schema"], data["from"], data["to"]) == (1, "egreedy", "egreedy/v2")
    assert data["candidate"]["feature_version"] == "v2"
    assert read_acts([V2.as_json()], "here") == (V2,)


@pytest.mark.parametrize(
    ("acts", "live"),
    [
        ([], ["egreedy"]),
        ([V2], ["egreedy", "egreedy/v2"]),
        ([V2, BACK], ["egreedy"]),
        ([V2, LINUCB], ["egreedy", "egreedy/v2", "linucb"]),
        ([V2, LINUCB, rolled_back("linucb", "egreedy/v2")], ["egreedy", "egreedy/v2"]),
        ([V2, LINUCB, rolled_back("linucb", "egreedy/v2"), BACK], ["egreedy"]),
        ([V2, BACK, promoted("egreedy", "linucb")], ["egreedy", "linucb"]),
        ([V2, promoted("egreedy/v2", "egreedy"), rolled_back("egreedy", "egreedy/v2")], ["egreedy", "egreedy/v2"]),
    ],
)
def test_rollbacks_undo_promotions_from_the_last_to_the_first(acts: list[Act], live: list[str]) -> None:
    assert live_history(acts, "here") == live


@pytest.mark.parametrize(
    ("acts", "number"),
    [
        ([LINUCB], 1),
        ([BACK], 1),
        ([rolled_back("egreedy", "egreedy")], 1),
        ([V2, V2], 2),
        ([V2, rolled_back("egreedy/v2", "linucb")], 2),
        ([V2, BACK, BACK], 3),
    ],
)
def test_acts_that_do_not_follow_from_each_other_are_damage(acts: list[Act], number: int) -> None:
    with pytest.raises(StateDamaged, match=f"entry {number} in here .* restore it from a backup"):
        live_history(acts, "here")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(sorted(json.loads(V2.as_json()))), _JSON)
@example("candidate", {"": float("inf")})
def test_any_other_value_is_damage_or_an_act_like_it(field: str, value: Any) -> None:
    line = json.dumps({**json.loads(V2.as_json()), field: value})
    try:
        acts = read_acts([line], "here")
    except StateDamaged:
        return
    assert json.loads(acts[0].as_json()) == json.loads(line)


@pytest.mark.parametrize("change", [{"schema": 2}, {"by": "somebody"}, {"act": "demote"}, {"at_ms": 10**18}])
def test_what_a_newer_tipbench_wrote_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(
        StateDamaged, match=r"unknown to this version of tipbench.*install the version of tipbench that wrote it"
    ):
        read_acts([json.dumps({**json.loads(V2.as_json()), **change})], "here")
