"""Gates that were held: kept as agreed, read newest first."""

import json
from pathlib import Path

import pytest

from tests.recommender.gates import a_result, held_gate
from tests.recommender.making import NOON
from tipbench import __version__
from tipbench.core.errors import StateDamaged, StateRefused
from tipbench.core.paths import gates_folder
from tipbench.recommender.promotion.gate_records import gate_records, store_gate
from tipbench.recommender.promotion.immutable_records import write_record


def test_a_record_has_what_was_agreed(home: Path) -> None:
    result = a_result()
    name = store_gate(home, result, lambda: NOON)
    data = json.loads((home / "recommender" / "gates" / f"{name}.json").read_bytes())
    assert sorted(data) == ["id", "made_ms", "outcome", "plan", "rules", "schema", "tipbench", "verdict"]
    assert (data["schema"], data["id"], data["made_ms"], data["tipbench"]) == (1, name, NOON * 1000, __version__)
    assert (data["plan"], data["verdict"]) == (result["plan"], result["gate"])
    assert set(data["rules"]) == {
        *("least_gain", "least_wins", "worst_loss", "least_prior_gain", "worst_prior_loss", "level")
    }


def test_gates_are_read_newest_first(home: Path) -> None:
    assert gate_records(home).newest_first() == []
    names = [held_gate(home), held_gate(home, "linucb"), held_gate(home, passed=False)]
    gates = gate_records(home).newest_first()
    assert [gate.id for gate in gates] == names[::-1]
    assert [gate.candidate["name"] for gate in gates] == ["egreedy/v2", "linucb", "egreedy/v2"]
    assert [gate.verdict.passed for gate in gates] == [False, True, True]
    assert gate_records(home).read(names[1]) == gates[1]
    assert gates[1].incumbent["name"] == "egreedy"


def test_an_edited_verdict_is_refused(home: Path) -> None:
    name = held_gate(home, passed=False)
    path = gates_folder(home) / f"{name}.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"passed": false', '"passed": true'), encoding="utf-8")
    with pytest.raises(StateDamaged, match="was changed after it was written"):
        gate_records(home).read(name)


def test_the_form_of_another_tipbench_is_refused(home: Path) -> None:
    name = write_record(gates_folder(home), {"schema": 2, "made_ms": 1})
    with pytest.raises(StateRefused, match=f"gate {name} was stored in a format .*; remove it from recommender/gates"):
        gate_records(home).read(name)
