"""The file of single scores: what a model wrote is data in it, whatever a spreadsheet or a reader makes of data."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tipbench.bench.compare.scores import check_scores_file, write_scores
from tipbench.core.errors import InvalidInput

ROWS: list[dict[str, Any]] = [
    {"run_id": "r1", "model": "m", "tone": 4, "note": "", "text": "Call Anke, then\nsleep \ud800."},
    {"run_id": "r2", "model": "m", "tone": -1, "note": "=HYPERLINK(1)", "text": '@SUM("a")\x1b[2J', "extra": 1},
]


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_json_holds_every_score_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    write_scores(path, ROWS)
    assert json.loads(path.read_text(encoding="utf-8")) == ROWS


def test_csv_has_every_column_and_runs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    write_scores(path, ROWS)
    first, second = read_csv(path)
    assert list(first) == ["run_id", "model", "tone", "note", "text", "extra"]
    assert first["text"] == "Call Anke, then\nsleep \\ud800."
    assert second["tone"] == "-1"
    assert second["note"] == "'=HYPERLINK(1)"
    assert second["text"] == '\'@SUM("a")\\u001b[2J'


@settings(max_examples=100)
@given(texts=st.lists(st.text(st.characters()), min_size=1, max_size=3))
def test_any_text_can_be_written_and_stays_in_its_cell(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    path = tmp_path_factory.getbasetemp() / "scores.csv"
    write_scores(path, [{"text": text, "end": "x"} for text in texts])
    found = read_csv(path)
    assert [row["end"] for row in found] == ["x"] * len(texts)
    assert not any(row["text"].startswith(("=", "+", "-", "@")) for row in found)


@pytest.mark.parametrize("name", ["scores.xlsx", "scores", "scores.CSV.txt"])
def test_another_kind_of_file_is_refused_before_anything_is_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match=r"\.csv or \.json"):
        check_scores_file(tmp_path / name)


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="can't be written"):
        write_scores(tmp_path / "missing" / "scores.csv", ROWS)


def test_no_scores_make_a_file_without_rows(tmp_path: Path) -> None:
    write_scores(tmp_path / "scores.csv", [])
    write_scores(tmp_path / "scores.json", [])
    assert read_csv(tmp_path / "scores.csv") == []
    assert json.loads((tmp_path / "scores.json").read_text(encoding="utf-8")) == []
