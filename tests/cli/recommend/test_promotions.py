"""`tipbench recommend promotions`, as a user types it."""

import json
from pathlib import Path

import pytest

from tests.integration.command import tipbench
from tests.recommender.gates import BACK, V2, held_gate
from tipbench.core.settings import Settings
from tipbench.recommender.store.moving import open_store


def test_before_the_first(home: Path) -> None:
    shown = tipbench("recommend", "promotions")
    assert (shown.status, shown.out) == (
        0,
        "egreedy is live by default: nothing was promoted yet.\n",
    )
    assert json.loads(tipbench("recommend", "promotions", "--format", "json").out) == {"live": "egreedy", "acts": []}


def test_the_history_with_its_gates(home: Path) -> None:
    promotions, name = open_store(Settings()).promotions, held_gate(home)
    acts = (V2.model_copy(update={"gate": name}), BACK, V2)
    for known, act in enumerate(acts):
        promotions.append(act, known)
    told = tipbench("recommend", "promotions").out
    assert told.startswith("egreedy/v2 is live since 1970-01-01 00:00 UTC.")
    rows = [line.split() for line in told.splitlines() if "1970-01-01" in line][1:]
    assert [row[3] for row in rows] == ["promote", "rollback", "promote"]
    assert rows[0][6:] == ["0" * 16, "the", "record", "is", "not", "here", "–"]
    assert rows[1][4:] == ["egreedy/v2", "egreedy", "–", "–", "–"]
    assert rows[2][4:] == ["egreedy", "egreedy/v2", name, "+0.0800", "–"]
    data = json.loads(tipbench("recommend", "promotions", "--format", "json").out)
    assert data["live"] == "egreedy/v2"
    assert data["acts"] == [json.loads(act.as_json()) for act in acts]


def test_an_edited_gate_is_shown_as_such(home: Path) -> None:
    name = held_gate(home)
    path = home / "recommender" / "gates" / f"{name}.json"
    path.write_text(path.read_text(encoding="utf-8").replace("0.08", "0.09"), encoding="utf-8")
    open_store(Settings()).promotions.append(V2.model_copy(update={"gate": name}), 0)
    assert "the record was changed" in tipbench("recommend", "promotions").out


def test_a_policy_that_is_not_what_was_promoted_any_more() -> None:
    before = {**V2.candidate, "parameters": {**V2.candidate["parameters"], "epsilon_floor": 0.2}}
    open_store(Settings()).promotions.append(V2.model_copy(update={"candidate": before}), 0)
    told = tipbench("recommend", "promotions").out
    assert "It is not what was promoted: egreedy/v2's epsilon_floor was 0.2, but is 0.05 now." in told


@pytest.mark.parametrize(
    "command", [("promotions",), ("promote", "linucb", "--yes"), ("rollback", "--yes"), ("serve",)]
)
def test_a_damaged_history_is_told_by_all(home: Path, command: tuple[str, ...]) -> None:
    open_store(Settings()).promotions.append(V2, 0)
    path = home / "recommender" / "promotions.jsonl"
    path.write_text("nonsense\n", encoding="utf-8")
    refused = tipbench("recommend", *command)
    assert refused.status == 2
    assert f"entry 1 in {path} is unknown to this version of tipbench; restore it from a backup" in refused.err
