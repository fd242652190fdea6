"""Reading results, and that it ends judging."""

import pytest

from tests.server.mcp.conftest import answer, faithful, refusal
from tests.server.views.conftest import EXPERIMENT
from tipbench.server.mcp.tools import Face
from tipbench.server.views.bench import BenchViews


def judge_everything(face: Face, views: BenchViews) -> None:
    while batch := answer(face, "next_items").get("batch"):
        done = answer(face, "submit_scores", batch=batch, scores=faithful(views.desk, batch, "person"))
        assert done["report"]["state"] == "counts"


def test_the_answer_comes_first_and_then_there_are_no_items(full: Face, views: BenchViews) -> None:
    batch = answer(full, "next_items")["batch"]
    board = answer(full, "leaderboard", experiment=EXPERIMENT)
    assert next(iter(board)) == "says"
    assert board["says"].startswith("No answer yet: nothing is judged. Next: ")
    assert {row["model"] for row in board["rows"]} == {"scripted/a", "scripted/b"}
    after = answer(full, "next_items")
    assert after["items"] == []
    assert "Experiments whose results or texts you have read are left out" in after["says"]
    refused = refusal(full, "submit_scores", batch=batch, scores=faithful(views.desk, batch, "person"))
    assert refused.startswith("the results or texts of this experiment were read over this connection")
    assert refusal(full, "next_items", experiment=EXPERIMENT) == refused


@pytest.mark.parametrize("tool", ["texts", "leaderboard"])
def test_a_name_that_there_is_not_is_refused(full: Face, tool: str) -> None:
    assert refusal(full, tool, experiment="no") == "there is no experiment 'no'; experiments lists them"
    assert answer(full, "next_items")["items"]


def test_texts_stand_side_by_side_and_end_judging(full: Face) -> None:
    found = answer(full, "texts", experiment=EXPERIMENT)
    rows = found["scenarios"][0]["rows"]
    assert {(row["model"], row["prompt"]) for row in rows} == {("scripted/a", "v1"), ("scripted/b", "v1")}
    assert rows[0]["best"]["text"].startswith("<<<material ")
    assert answer(full, "next_items")["items"] == []
    assert "has no model 'x'" in refusal(full, "texts", experiment=EXPERIMENT, model="x")


def test_experiments_show_an_answer_only_where_nothing_waits(full: Face, views: BenchViews) -> None:
    listed = answer(full, "experiments")["experiments"]
    expected = "0 cells judged, 16 pending, 0 failed; leaderboard has the answer so far"
    assert listed == [{"experiment": EXPERIMENT, "says": expected}]
    judge_everything(full, views)
    assert "scripted/" in answer(full, "experiments")["experiments"][0]["says"]
    assert "were read over this connection" in refusal(full, "next_items", experiment=EXPERIMENT)
