"""JUnit XML follows its schema and a summary is one paragraph and a table, whatever names and texts are."""

from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest
import xmlschema
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.compare.made_cells import board, cell, persona_cells
from tipbench.bench.compare.check import CheckResult, check_row, require_evidence
from tipbench.bench.compare.ci_files import as_junit, as_summary, check_output_file
from tipbench.bench.compare.leaderboard import Leaderboard
from tipbench.core.errors import InvalidInput


@cache
def _schema() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(Path(__file__).with_name("junit.xsd"))


def _parsed(xml: str) -> ElementTree.Element:
    content = xml.encode()
    root = ElementTree.fromstring(content)
    _schema().validate(root)
    return root


def _board(worse: float) -> Leaderboard:
    scores = [13.0, 15.0, 14.0, 16.0, 12.0, 15.0, 14.0, 13.0]
    return board(
        *persona_cells("good", "v1", scores), *persona_cells("other", "v1", [score - worse for score in scores])
    )


@pytest.mark.parametrize(
    ("worse", "row", "required", "failing"),
    [
        (5, "good×v1", True, None),
        (5, "other×v1", False, "not lost"),
        (0, "other×v1", True, "enough evidence"),
        (0, "other×v1", False, None),
    ],
)
def test_a_case_fails_where_the_gate_does(worse: float, row: str, required: bool, failing: str | None) -> None:
    result = check_row(_board(worse), row, 0)
    result = require_evidence(result) if required else result
    root = _parsed(as_junit(_board(worse), result, required))
    failed = [case.get("name", "") for case in root.iter("testcase") if case.find("failure") is not None]
    assert [name.split(": ")[1] for name in failed] == ([failing] if failing else [])
    suite = root[0]
    assert (suite.get("tests"), suite.get("failures")) == ("4", str(len(failed)))


def test_a_row_without_scores_is_skipped() -> None:
    made = board(*persona_cells("good", "v1", [9.0, 10.0]), cell("s1", "bare"))
    root = _parsed(as_junit(made, check_row(made, "bare×v1", 0), False))
    skipped = [case.get("name") for case in root.iter("testcase") if case.find("skipped") is not None]
    assert skipped == ["bare × v1: enough evidence", "row bare × v1"]


@given(name=st.text(max_size=50), sentence=st.text(max_size=100))
def test_any_name_and_sentence_gives_valid_xml_and_a_summary_that_utf_8_can_hold(name: str, sentence: str) -> None:
    made = board(*persona_cells(name or "m", "v1", [9.0, 10.0]))
    result = CheckResult("lost", sentence, f"{name} × v1")
    _parsed(as_junit(made, result, True))
    lines = as_summary(made, result, None).encode().decode().split("\n")
    assert lines[2].startswith("❌ ")
    assert lines[3] == ""


def test_a_file_with_somebodys_scores_is_not_replaced(tmp_path: Path) -> None:
    file = tmp_path / "judge.json"
    file.write_text('{"format": "tipbench-judge/1"}')
    with pytest.raises(InvalidInput, match="somebody's scores"):
        check_output_file(file)
    with pytest.raises(InvalidInput, match="there is no folder"):
        check_output_file(tmp_path / "nowhere" / "x.xml")
    check_output_file(tmp_path / "new.xml")
