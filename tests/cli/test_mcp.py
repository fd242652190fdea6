"""`tipbench mcp` before it serves: names that can't be used, and a package that is not there."""

import sys

import pytest

from tipbench.cli.main import run


@pytest.mark.parametrize(
    ("name", "problem"),
    [("two words", "judge name 'two words' can't be used"), ("lexical", "'lexical' is an automatic judge")],
)
def test_a_judge_has_a_name_that_can_be_used(name: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mcp", "--judge", name]) == 2
    assert problem in capsys.readouterr().err


def test_without_the_package_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.delitem(sys.modules, "tipbench.server.mcp.server", raising=False)
    assert run(["mcp"]) == 2
    assert "the MCP server needs another package: pip install 'tipbench[mcp]'" in capsys.readouterr().err
