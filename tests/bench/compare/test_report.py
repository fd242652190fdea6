"""A leaderboard on paper says the same in every format, and where its figures come from."""

import csv
import io
import json

import pytest

from tests.bench.compare.made_cells import board, cell, counted, failed, persona_cells, provisional
from tipbench.bench.compare.leaderboard import Leaderboard
from tipbench.bench.compare.messages import FORMATS, as_csv, as_data, as_json, as_markdown, headline, mark

BASE = [9.0, 11.0, 10.0, 12.0, 8.0, 11.0, 10.0, 9.0]
LATE = cell("p0-morning", "late", "v1", factors={"persona": "p0", "time_slot": "morning"})
BOARD = board(
    *persona_cells("good", "v1", [score + 5 for score in BASE]),
    *persona_cells("middle", "v1", BASE),
    *persona_cells("bad", "v1", [score - 3 for score in BASE]),
    LATE,
)


def from_csv(found: Leaderboard) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(as_csv(found))))


def test_the_formats_agree_on_the_figures() -> None:
    in_json, in_csv = json.loads(as_json(BOARD))["standings"], from_csv(BOARD)
    assert [row["model"] for row in in_json] == [row["model"] for row in in_csv] == ["good", "middle", "bad", "late"]
    for as_in_json, as_in_csv in zip(in_json[:3], in_csv[:3], strict=True):
        for name, score in as_in_json["scores"].items():
            assert [float(as_in_csv[key]) for key in (name, f"{name}.low", f"{name}.high")] == pytest.approx(
                [score["mean"], score["low"], score["high"]]
            )
        assert as_in_json["composite"] == as_in_json["scores"]["composite"]["mean"]
        assert str(as_in_json["top"]) == as_in_csv["top"]
        assert as_in_json["p_best"] == float(as_in_csv["p_best"])
    assert (in_json[3]["composite"], in_csv[3]["composite"]) == (None, "")
    assert "| ● | good | v1 | 15.00 |" in as_markdown(BOARD)
    assert "| – | late | v1 | – | – | – |" in as_markdown(BOARD)


def test_json_holds_everything_that_is_known() -> None:
    data = as_data(BOARD)
    assert data["says"][0] == headline(BOARD)
    assert data["comparison"]["unit"] == "persona"
    assert data["comparison"]["needed"]["more_scenarios"] == 0
    assert data["effects"]["models"]["levels"][0]["name"] == "good"
    assert data["standings"][0]["slices"]["persona"]["p0"]["scenarios"] == 2
    assert data["standings"][0]["cost"]["wall_s"] is None
    assert data["scales"]["composite"] == [2.0, 17.0]
    assert data["cells"] == {"judged": 24, "pending": 1, "failed": 0, "missing": 7}


def test_the_mark_says_whether_a_row_may_be_the_best() -> None:
    assert [mark(one) for one in BOARD.rows] == ["●", "", "", "–"]
    few = board(*persona_cells("a", "v1", [17, 17]), *persona_cells("b", "v1", [5, 5]))
    assert [mark(one) for one in few.rows] == ["?", "?"]


def test_provisional_figures_are_called_that_in_every_format() -> None:
    found = board(provisional(cell("s1"), 9))
    assert "PROVISIONAL" in as_markdown(found)
    assert json.loads(as_json(found))["provisional"] is True
    assert {row["provisional"] for row in from_csv(found)} == {"True"}


def test_bounds_are_shown_where_something_is_missing() -> None:
    assert "if worst – if best" in as_markdown(BOARD)
    whole = board(*persona_cells("a", "v1", BASE), *persona_cells("b", "v1", BASE))
    assert "if worst" not in as_markdown(whole)


def test_names_can_not_break_out_of_the_table_or_the_terminal() -> None:
    nasty = "=cmd|'/c calc'!A1\x1b[2J\n"
    found = board(counted(cell("s1", nasty), 9), failed(cell("s2", nasty)))
    table = [line for line in as_markdown(found).splitlines() if line.startswith("|")]
    assert len(table) == 3
    assert table[-1].replace("\\|", "").count("|") == table[0].count("|")
    assert all("\x1b" not in write(found) for write in FORMATS.values())
    assert from_csv(found)[0]["model"].startswith("'=cmd")


def test_an_empty_leaderboard_can_be_written_in_every_format() -> None:
    assert json.loads(as_json(board()))["standings"] == []
    assert from_csv(board()) == []
    assert "No judge has scored anything yet" in as_markdown(board())


def test_markdown_shows_names_and_runs_none_of_them() -> None:
    nasty = "a\\|b<img src=x>[x](javascript:y)"
    table = as_markdown(board(counted(cell("s1", nasty), 9))).splitlines()
    assert any("a\\\\\\|b&lt;img src=x&gt;\\[x\\](javascript:y)" in line for line in table)
