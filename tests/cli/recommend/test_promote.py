"""`tipbench recommend promote`, as a user types it."""

import io
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.integration.command import Finished, tipbench, tipbench_process
from tests.recommender.gates import held_gate
from tipbench.core.settings import Settings
from tipbench.recommender.promotion.live import live_now


def _history(home: Path) -> list[dict[str, object]]:
    lines = (home / "recommender" / "promotions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_promoted_by_the_newest_gate(home: Path) -> None:
    held_gate(home)
    name = held_gate(home)
    done = tipbench("recommend", "promote", "egreedy/v2", "--yes")
    assert done.status == 0, done.err
    assert f"egreedy/v2 is live now instead of egreedy, by gate {name}" in done.out
    assert live_now(Settings()) == "egreedy/v2"
    (act,) = _history(home)
    assert (act["act"], act["from"], act["to"], act["gate"]) == ("promote", "egreedy", "egreedy/v2", name)


@pytest.mark.parametrize(("answer", "live"), [("y", "egreedy/v2"), ("n", "egreedy"), ("", "egreedy")])
def test_it_asks_first(home: Path, monkeypatch: pytest.MonkeyPatch, answer: str, live: str) -> None:
    name = held_gate(home)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{answer}\n"))
    done = tipbench("recommend", "promote", "egreedy/v2", "--gate", name)
    assert done.status == 0, done.err
    assert f"Make egreedy/v2 live instead of egreedy? It passed gate {name}" in done.out
    assert ("Nothing was changed: egreedy is live." in done.out) == (live == "egreedy")
    assert live_now(Settings()) == live


def test_nobody_answers(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held_gate(home)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert tipbench("recommend", "promote", "egreedy/v2").status == 2
    assert live_now(Settings()) == "egreedy"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("egreedy/v2",), "run one: tipbench sim gate --candidate egreedy/v2 --incumbent egreedy"),
        (("egreedy/v2", "--gate", "../../key"), "'../../key' is not a record id"),
        (("egreedy/v2", "--gate", "0" * 16), "there is no gate 0000000000000000"),
        (("egreedy/v2", "--world", "nowhere.yaml"), "the world nowhere.yaml can't be read"),
        (("egreedy",), "egreedy is live already"),
        (("thompson",), "no policy 'thompson' can be served; there are egreedy, egreedy/v2, linucb"),
    ],
)
def test_refused_in_one_sentence(home: Path, words: tuple[str, ...], told: str) -> None:
    refused = tipbench("recommend", "promote", *words, "--yes")
    assert refused.status == 2
    assert told in refused.err
    assert not (home / "recommender" / "promotions.jsonl").exists()


def test_of_two_at_once_one_wins_and_the_other_is_told(home: Path) -> None:
    for policy in ("egreedy/v2", "linucb"):
        held_gate(home, policy)

    def promote(policy: str) -> Finished:
        return tipbench_process("recommend", "promote", policy, "--yes")

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(promote, ("egreedy/v2", "linucb")))
    assert sorted(one.status for one in done) == [0, 2]
    loser = next(one for one in done if one.status)
    (act,) = _history(home)
    assert act["to"] == live_now(Settings())
    assert "somebody else changed it first" in loser.err or f"and {act['to']} is live now" in loser.err


def test_help_has_an_example() -> None:
    assert "tipbench recommend promote egreedy/v2" in tipbench("recommend", "promote", "--help").out
