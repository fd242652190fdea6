"""Scenarios from CSV and JSON Lines: all of a file, or nothing."""

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.integration.command import tipbench
from tipbench.bench.suites.importing import import_scenarios
from tipbench.bench.suites.load import load_suite
from tipbench.core.errors import InvalidInput

SUPPORT = Path(__file__).parents[2] / "integration" / "suites" / "support"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SUPPORT, tmp_path / "support"))


def _file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


CSV = (
    "id,customer,Question,checks\n"
    'case-a,new,"Where, please?","{""right"": {""check"": ""contains"", ""texts"": [""here""]}}"\n'
    'case-b,regular,"Two\nlines 🎉",\n'
)


def test_columns_become_factors_details_and_checks(suite: Path, tmp_path: Path) -> None:
    before = (suite / "scenarios.yaml").read_text(encoding="utf-8")
    done = tipbench("suite", "import", str(suite), str(_file(tmp_path, "cases.csv", CSV)))
    assert done.status == 0, done.err
    assert [" ".join(line.split()) for line in done.out.splitlines()] == [
        f"2 scenarios taken from {tmp_path / 'cases.csv'}: case-a, case-b",
        "factors customer",
        "details question",
        "checks on 1 scenario",
        "The suite has 10 scenarios now and is valid.",
    ]
    loaded = load_suite(str(suite))
    assert loaded.scenarios[-1].text == "somebody who has bought for years writes: Two\nlines 🎉"
    assert loaded.rubric.scenario_checks["case-a"]["right"].texts == ["here"]
    assert (suite / "scenarios.yaml").read_text(encoding="utf-8").startswith(before), (
        "what was there stays, comments too"
    )


def test_a_file_that_is_imported_again_changes_nothing(suite: Path, tmp_path: Path) -> None:
    lines = [{"customer": "new", "question": f"Question {n}?"} for n in range(3)]
    file = _file(tmp_path, "cases.jsonl", "\n".join(map(json.dumps, lines)) + "\n\n")
    first = import_scenarios(suite, file)
    written = (suite / "scenarios.yaml").read_bytes()
    again = import_scenarios(suite, file)
    assert (len(first.taken), again.taken, again.known) == (3, (), first.taken)
    assert (suite / "scenarios.yaml").read_bytes() == written


def test_json_lines_may_spell_out_factors_and_details_as_scenarios_yaml_does(suite: Path, tmp_path: Path) -> None:
    line = {"id": "x", "factors": {"customer": "new"}, "details": {"question": "Why?"}, "checks": {}}
    assert import_scenarios(suite, _file(tmp_path, "x.jsonl", json.dumps(line))).taken == ("x",)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("x.txt", "", "neither"),
        ("x.csv", "", "holds no scenario"),
        ("x.csv", "id,id\na,b\n", "is there twice"),
        ("x.csv", "id,customer\na\n", "line 2: it has another number of values"),
        ("x.csv", 'id,customer,question\na,new,"open\n', "can't be imported"),
        ("x.csv", "id,customer,question,checks\na,new,q,{\n", "line 2, column checks: not valid JSON"),
        ("x.csv", "id,customer,question\na,nobody,q\n", "factor 'customer' has no level 'nobody'"),
        ("x.csv", "id,customer,question\na,new,q\na,new,r\n", "x.csv:3: the id 'a' is already used"),
        ("x.csv", "id,customer,question\nreturn,new,q\n", "x.csv:2: the suite has another scenario 'return'"),
        ("x.csv", "id,customer,Question,question\na,new,q,r\n", "two columns would both be called 'question'"),
        ("x.csv", "id,customer\na,new\n", "'question' is undefined"),
        ("x.jsonl", "[1]\n", "line 1: [1] is no object"),
        ("x.jsonl", '{"customer": "new", "question": NaN}\n', "NaN is not JSON"),
        ("x.jsonl", '{"customer": "new", "question": "\\ud800"}\n', "text that a file can hold"),
        (
            "x.jsonl",
            '{"id": "a", "customer": "new", "question": "q", "checks": {"right": {"check": "regex", "pattern": "("}}}',
            "scenario 'a': checks.right: the pattern can't be used",
        ),
    ],
)
def test_a_file_that_can_t_be_used_is_refused_whole(
    suite: Path, tmp_path: Path, name: str, text: str, says: str
) -> None:
    before = (suite / "scenarios.yaml").read_bytes()
    done = tipbench("suite", "import", str(suite), str(_file(tmp_path, name, text)))
    assert done.status == 2
    assert says in done.err
    assert (suite / "scenarios.yaml").read_bytes() == before


def test_a_folder_without_a_suite_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no suite in"):
        import_scenarios(tmp_path, _file(tmp_path, "x.csv", "id\na\n"))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(questions=st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=3, unique=True))
def test_any_text_comes_in_as_it_is_or_is_refused(suite: Path, tmp_path: Path, questions: list[str]) -> None:
    before = (SUPPORT / "scenarios.yaml").read_bytes()
    (suite / "scenarios.yaml").write_bytes(before)
    lines = [json.dumps({"id": f"q{n}", "customer": "new", "question": text}) for n, text in enumerate(questions)]
    try:
        import_scenarios(suite, _file(tmp_path, "any.jsonl", "\n".join(lines)))
    except InvalidInput:
        assert (suite / "scenarios.yaml").read_bytes() == before
    else:
        loaded = load_suite(str(suite)).scenarios[-len(questions) :]
        assert [one.variables["question"] for one in loaded] == questions
