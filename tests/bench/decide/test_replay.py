"""`tipbench decide --replay`: a decision on anybody's matrix of scores."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.integration.command import tipbench
from tipbench.bench.decide.replay import replay

ROWS = {"ant": 14.0, "bee": 11.0, "cat": 8.0}


def matrix(path: Path, items: int = 60, clusters: int = 0) -> Path:
    drawn = random.Random(1)
    lines = ["row,item,score" + (",cluster" if clusters else "")]
    for item in range(items):
        shared = drawn.gauss(0, 1.5)
        for row, mean in ROWS.items():
            score = min(17.0, max(2.0, round(mean + shared + drawn.gauss(0, 1.5))))
            lines.append(f"{row},i{item},{score}" + (f",c{item % clusters}" if clusters else ""))
    path.write_text("\n".join(lines) + "\n")
    return path


def replayed(path: Path, *flags: str) -> tuple[int, dict[str, Any]]:
    done = tipbench("decide", "--replay", str(path), "--format", "json", *flags)
    assert done.status in (0, 1), done.err
    return done.status, json.loads(done.out)


@pytest.mark.parametrize("claim", ["pool", "new"])
def test_a_winner_is_proven(tmp_path: Path, claim: str) -> None:
    status, found = replayed(matrix(tmp_path / "m.csv"), "--good-enough", "0", "--claim", claim, "--scale", "2,17")
    assert status == 0
    assert (found["winner"], found["proven"], found["claim"]) == ("ant", True, claim)
    assert found["judgements"] < 60 * 3
    out_after = {row["row"]: row["out_after"] for row in found["rows"]}
    assert out_after["ant"] is None
    assert out_after["cat"] <= out_after["bee"]
    assert ("new scenarios of this kind" in found["says"]) == (claim == "new")


def test_good_enough_takes_fewer_judgements_and_says_that_nothing_is_proven(tmp_path: Path) -> None:
    path = matrix(tmp_path / "m.csv")
    status, found = replayed(path)
    assert status == 0
    assert (found["winner"], found["proven"]) == ("ant", False)
    assert found["expected_loss"] <= 0.15
    assert "not proven" in found["says"]
    assert found["judgements"] < replayed(path, "--good-enough", "0")[1]["judgements"]


def test_too_little_stays_open(tmp_path: Path) -> None:
    status, found = replayed(matrix(tmp_path / "m.csv", items=4), "--good-enough", "0")
    assert status == 1
    assert found["winner"] is None
    assert found["says"].startswith("Undecided: ")
    assert "the pool is used up" in found["next"]
    status, found = replayed(matrix(tmp_path / "m.csv"), "--good-enough", "0", "--budget", "12")
    assert (status, found["judgements"]) == (1, 12)


def test_one_item_of_a_cluster_is_drawn_and_a_seed_shuffles(tmp_path: Path) -> None:
    path = matrix(tmp_path / "m.csv", clusters=20)
    found = replayed(path, "--good-enough", "0")[1]
    assert found["items"] <= 20
    same, other = (replayed(path, "--good-enough", "0", "--seed", seed)[1] for seed in ("1", "2"))
    assert same == replayed(path, "--good-enough", "0", "--seed", "1")[1]
    assert [row["mean"] for row in same["rows"]] != [row["mean"] for row in other["rows"]]


def test_the_terminal_begins_with_the_answer(tmp_path: Path) -> None:
    done = tipbench("decide", "--replay", str(matrix(tmp_path / "m.csv")))
    assert done.status == 0
    lines = done.out.splitlines()
    assert lines[0].startswith("Take ant: picking it is expected to lose ")
    assert any(line.startswith("Next: take ant") for line in lines)


@pytest.mark.parametrize(
    ("text", "flags", "said"),
    [
        ("row,item\na,1\n", (), "needs the columns row, item, score; score not found"),
        ("row,item,score\na,1,x\nb,1,2\n", (), "line 2: needs a row, an item and a number as its score (given: 'x')"),
        ("row,item,score\na,1,1\na,1,2\nb,1,3\n", (), "line 3: a has two scores on item 1"),
        ("row,item,score\na,1,1\nb,1,2\na,2,3\n", (), "b has no score on item 2"),
        ("row,item,score\na,1,1\na,2,2\n", (), "there must be at least two rows; there is 1"),
        ("row,item,score\na,1,1\nb,1,1\n", (), "all scores in"),
        ("row,item,score\na,1,1\nb,1,9\n", ("--scale", "1,5"), "has the score 9, outside of --scale 1,5"),
        ("row,item,score\na,1,1\nb,1,9\n", ("--scale", "5"), "must be two numbers"),
        ("row,item,score\na,1,nan\nb,1,9\n", (), "line 2: needs a row"),
        ("row,item,score,cluster\na,1,1,x\nb,1,9,y\n", (), "item 1 is in two clusters"),
    ],
)
def test_what_can_not_be_used(tmp_path: Path, text: str, flags: tuple[str, ...], said: str) -> None:
    (tmp_path / "m.csv").write_text(text)
    done = tipbench("decide", "--replay", str(tmp_path / "m.csv"), *flags)
    assert done.status == 2
    assert said in done.err


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    done = tipbench("decide", "--replay", str(tmp_path / "none.csv"))
    assert done.status == 2
    assert "none.csv can't be read" in done.err


def test_where_most_scores_are_at_the_end_of_the_scale_the_loss_may_be_three_times_as_large(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    scores = {(row, item): 17 if (item + number) % 5 else 12 for item in range(20) for number, row in enumerate("ab")}
    lines = [f"{row},s{item},{score}" for (row, item), score in scores.items()]
    path.write_text("\n".join(["row,item,score", *lines]))
    _, found = replayed(path, "--scale", "2,17", "--good-enough", "0")
    assert "possibly three times that, because most scores are at the end of the scale" in found["says"]


def test_a_winner_after_a_restart_is_claimed_with_less_certainty(tmp_path: Path) -> None:
    verdict = replay(matrix(tmp_path / "m.csv", items=60), good_enough=0.0)
    assert "wrong at most 5 times in 100" in verdict.says
    assert "wrong at most 10 times in 100, because accounts were started over" in replace(verdict, restarts=1).says
