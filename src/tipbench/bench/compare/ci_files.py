"""The result of a check for continuous integration, as files: JUnit XML, and a Markdown summary for a pull request."""

from pathlib import Path
from xml.etree import ElementTree

from tipbench.bench.compare.check import CheckResult
from tipbench.bench.compare.leaderboard import Leaderboard, row_label
from tipbench.bench.compare.leaderboard_row import LeaderboardRow
from tipbench.bench.compare.messages import as_markdown, figure, range_text
from tipbench.core.errors import InvalidInput
from tipbench.core.files import read_start
from tipbench.core.untrusted import markdown_text, xml_text

_MARKS = {"held": "✅", "lost": "❌", "open": "❔"}


def as_junit(board: Leaderboard, result: CheckResult, require_evidence: bool) -> str:
    """Return JUnit XML: a test suite for the experiment, with a test case for each condition and for each row.

    The row that the check is about fails where the evidence says that it lost, and, if evidence is required, where too
    little is known. The other rows are there to be read: they never fail, and without scores they are skipped.
    """
    root = ElementTree.Element("testsuites", name="tipbench")
    suite = ElementTree.SubElement(root, "testsuite", name=xml_text(board.experiment))
    lost = _case(suite, board, f"{result.row}: not lost")
    if result.outcome == "lost":
        _problem(lost, "failure", result.sentence)
    known = _case(suite, board, f"{result.row}: enough evidence")
    if not result.is_shown and result.outcome != "lost":
        _problem(known, "failure" if require_evidence else "skipped", result.sentence)
    for row in board.rows:
        case = _case(suite, board, f"row {row_label(board, row)}")
        if row.composite is None:
            _problem(case, "skipped", "it has no scores")
        else:
            ElementTree.SubElement(case, "system-out").text = xml_text(_about(row))
    for element in (root, suite):
        for name, kind in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            if (element, name) != (root, "skipped"):  # which has no such attribute
                element.set(name, str(len(list(suite.iter(kind)))))
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _case(suite: ElementTree.Element, board: Leaderboard, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(
        suite, "testcase", name=xml_text(name), classname=xml_text(f"tipbench.{board.experiment}"), time="0"
    )


def _problem(case: ElementTree.Element, kind: str, sentence: str) -> None:
    ElementTree.SubElement(case, kind, message=xml_text(sentence))


def _about(row: LeaderboardRow) -> str:
    interval = row.intervals.get("composite")
    within = f" (95 %: {range_text(*interval)})" if interval else ""
    counts = f"{row.scored} scored, {row.pending} pending, {row.failed} failed, {row.missing} missing"
    return f"composite {figure(row.composite)}{within}; {counts}"


def as_summary(board: Leaderboard, result: CheckResult | None, changes: str | None) -> str:
    """Return Markdown for a pull request: the check's result first, then the leaderboard, or the changes if given."""
    lead = [f"{_MARKS[result.outcome]} {markdown_text(result.sentence)}", ""] if result else []
    return "\n".join([f"### {markdown_text(board.experiment)}", "", *lead, changes or as_markdown(board), ""])


def check_output_file(path: Path) -> None:
    """Raise InvalidInput if a file can't be written there, or if it would replace somebody's scores."""
    if not path.parent.is_dir():
        raise InvalidInput(f"{path} can't be written: there is no folder {path.parent}")
    if path.is_file() and b'"tipbench-judge/' in read_start(path):
        raise InvalidInput(f"{path} is a judge file and may contain somebody's scores; choose another file")
