"""Each Ollama host's pool has one slot, whatever it had before."""

import pytest

from tests.airflow.fake_airflow import FakeAirflow
from tipbench.airflow.setup import check_pools, make_pools


def test_a_missing_pool_is_made_and_one_with_more_slots_set_back() -> None:
    airflow = FakeAirflow(pools={"ollama_b": 4, "ollama_c": 1})
    said = [check.text for check in make_pools(airflow.api(), ["ollama_a", "ollama_b", "ollama_c"])]
    assert airflow.pools == {"ollama_a": 1, "ollama_b": 1, "ollama_c": 1}
    assert airflow.changes == ["POST /pools 1", "PATCH /pools/ollama_b 1"]
    assert said == [
        "ollama_a was created, with one slot",
        "ollama_b had 4 slots and was reset to one",
        "ollama_c exists, with one slot",
    ]


@pytest.mark.parametrize(
    ("pools", "good", "said"),
    [({}, False, "is missing"), ({"ollama_a": 0}, False, "has 0 slots"), ({"ollama_a": 1}, True, "with one slot")],
)
def test_a_check_changes_nothing(pools: dict[str, int], good: bool, said: str) -> None:
    airflow = FakeAirflow(pools=dict(pools))
    (check,) = check_pools(airflow.api(), ["ollama_a"])
    assert check.good is good
    assert said in check.text
    assert airflow.pools == pools
    assert airflow.changes == []
