"""A leaderboard on paper says the same in every format, and where its figures come from."""

import csv
import io
import json
from dataclasses import replace

from tipbench.compare.leaderboard import Leaderboard
from tipbench.compare.report import FORMATS, as_csv, as_json, as_markdown, headline, prompt_label, rows
from tipbench.records import Standing

FIRST = Standing(
    model="m1",
    prompt="v1",
    prompt_digest="d" * 64,
    settings={"temperature": "0.7", "n_tips": "5"},
    means={"tone": 4.0, "composite": 12.75},
    scenarios=("s1", "s2"),
    scored=8,
    judged=8,
    pending=0,
    failed=0,
    empty=1,
    candidates=4.5,
    wall_s=2.0,
    generate_s=1.5,
    output_tokens=None,
    diversity=0.25,
)
LAST = replace(FIRST, model="m2", means={}, scored=0, judged=0, pending=6, failed=2, empty=0)
BOARD = Leaderboard(
    experiment="tip-bench-x",
    rubric="tip-v1",
    rubric_digest="r" * 64,
    scores=("tone", "composite"),
    flags=(),
    judges=("agent",),
    kappas={"agent": {"tone": 0.876}},
    provisional=False,
    other_rubrics=0,
    uneven=False,
    standings=(FIRST, LAST),
)


def test_the_headline_names_the_judges_the_rubric_and_all_counts() -> None:
    assert headline(BOARD) == "Judged by agent (κ 0.88) against tip-v1: 8 cells judged, 6 pending, 2 failed."


def test_provisional_figures_are_called_that_in_every_format() -> None:
    board = replace(BOARD, provisional=True, judges=("lexical",))
    assert headline(board).startswith("PROVISIONAL")
    assert "PROVISIONAL" in as_markdown(board)
    assert json.loads(as_json(board))["provisional"] is True
    assert {row["provisional"] for row in csv.DictReader(io.StringIO(as_csv(board)))} == {"True"}


def test_an_unjudged_experiment_says_so() -> None:
    board = replace(BOARD, judges=(), provisional=True, standings=(LAST,))
    assert headline(board) == "No judge has scored anything yet: 0 cells judged, 6 pending, 2 failed."


def test_a_row_without_a_score_has_no_rank() -> None:
    assert [row["rank"] for row in rows(BOARD)] == [1, None]


def test_the_formats_agree_on_the_figures() -> None:
    from_json = json.loads(as_json(BOARD))["standings"]
    from_csv = list(csv.DictReader(io.StringIO(as_csv(BOARD))))
    assert [row["model"] for row in from_json] == [row["model"] for row in from_csv] == ["m1", "m2"]
    assert from_json[0]["composite"] == float(from_csv[0]["composite"]) == 12.75
    assert from_json[1]["composite"] is None
    assert from_csv[1]["composite"] == ""
    assert "| 1 | m1 | v1 | 12.75 | 4.00 | 8 | 0 | 0 |" in as_markdown(BOARD)
    assert "| – | m2 | v1 | – | – | 0 | 6 | 2 |" in as_markdown(BOARD)


def test_a_prompt_with_two_texts_shows_which_is_which() -> None:
    other = replace(FIRST, prompt_digest="e" * 64)
    assert prompt_label(BOARD, FIRST) == "v1"
    assert prompt_label(replace(BOARD, standings=(FIRST, other)), other) == "v1@eeeeeeeeeeee"


def test_names_can_not_break_out_of_the_table_or_the_terminal() -> None:
    board = replace(BOARD, standings=(replace(FIRST, model="=cmd|'/c calc'!A1\x1b[2J\n"),))
    table = as_markdown(board).splitlines()
    assert len(table) == 5
    assert table[-1].replace("\\|", "").count("|") == table[2].count("|")
    assert all("\x1b" not in write(board) for write in FORMATS.values())
    assert next(csv.DictReader(io.StringIO(as_csv(board))))["model"].startswith("'=cmd")


def test_an_empty_leaderboard_can_be_written_in_every_format() -> None:
    board = replace(BOARD, standings=(), judges=())
    assert json.loads(as_json(board))["standings"] == []
    assert list(csv.DictReader(io.StringIO(as_csv(board)))) == []
    assert "No judge has scored anything yet" in as_markdown(board)


def test_rows_that_were_asked_in_another_way_are_told_apart() -> None:
    hot = replace(FIRST, settings={"temperature": "1.2", "n_tips": "5"})
    board = replace(BOARD, standings=(FIRST, hot, LAST))
    assert [prompt_label(board, row) for row in board.standings] == [
        "v1 (temperature=0.7)",
        "v1 (temperature=1.2)",
        "v1",
    ]
