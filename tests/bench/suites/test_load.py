"""A mistake in a suite is told by file and line, and all of them in one go."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tipbench.bench.suites.load import built_in_suites, load_suite, write_starter
from tipbench.bench.suites.rubric import parse_rubric
from tipbench.core.errors import InvalidInput, SuiteError
from tipbench.core.identity import text_digest

SUITE = """\
schema: 1
name: small
experiment_prefix: small-bench-
factors:
  reader:
    child:
      label: a child
output:
  format: lines
"""
SCENARIOS = """\
- id: first
  factors: {reader: child}
  details:
    passage: The sea rises.
- id: second
  factors:
    reader: child
  details:
    passage: The sea falls.
"""
SCENARIO = """\
For {{ reader.label }}.
{{ passage }}
"""
SYSTEM = """\
system: |
  You are short.
  You are {{ n_tips }} times short."""
PROMPT = f"""\
---
description: Plain.
{SYSTEM}
---
Write {{{{ n_tips }}}}.
{{{{ scenario }}}}
"""
RUBRIC = """\
---
name: small-v1
criteria:
  fit_for_reader: {min: 1, max: 2}
  truth: {min: 0, max: 1}
---
# Rubric

## Fit for reader
### 1
No.
### 2
Yes.

## Truth
### 0
No.
### 1
Yes.
"""
FILES = {
    "suite.yaml": SUITE,
    "scenarios.yaml": SCENARIOS,
    "scenario.md": SCENARIO,
    "prompts/v1.md": PROMPT,
    "rubric.md": RUBRIC,
}
Change = tuple[str, str, str]  # file, what is there, what stands there instead


def written(folder: Path, *changes: Change) -> str:
    files = dict(FILES)
    for name, old, new in changes:
        assert files[name].count(old) == 1
        files[name] = files[name].replace(old, new)
    (folder / "prompts").mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return str(folder)


def problems(suite: str) -> tuple[str, ...]:
    with pytest.raises(SuiteError) as caught:
        load_suite(suite)
    return caught.value.problems


def test_a_name_that_is_too_long_for_a_folder_is_no_suite() -> None:
    with pytest.raises(InvalidInput, match=r"there is no suite 'xxx.*…'") as caught:
        load_suite("x" * 5000)
    assert len(str(caught.value)) < 500


def test_a_suite_without_a_mistake_is_loaded(tmp_path: Path) -> None:
    suite = load_suite(written(tmp_path))
    assert [scenario.text for scenario in suite.scenarios] == [
        "For a child.\nThe sea rises.",
        "For a child.\nThe sea falls.",
    ]
    assert list(suite.prompts) == ["v1"]
    assert list(suite.rubric.criteria) == ["fit_for_reader", "truth"]


@pytest.mark.parametrize(
    ("file", "old", "new", "line", "message"),
    [
        ("suite.yaml", "output:", "outptu: 1\noutput:", 8, "unknown key"),
        ("suite.yaml", "name: small\n", "", 1, "name: is missing"),
        ("suite.yaml", "format: lines", "format: xml", 9, "json_array"),
        ("suite.yaml", "schema: 1", "schema: 2", 1, "schema"),
        ("suite.yaml", "  format: lines", "  format: lines\n  format: text", 10, "'format' is given twice"),
        ("suite.yaml", "label: a child", "label: [a", 8, "not valid YAML"),
        ("scenarios.yaml", "id: second", "id: first", 5, "the id 'first' is already used (line 1)"),
        ("scenarios.yaml", "id: second", "id: Second!", 5, "1.id"),
        ("scenarios.yaml", "    reader: child", "    reader: adult", 7, "no level 'adult' (it has child)"),
        ("scenarios.yaml", "    reader: child", "    reader: child\n    mood: sad", 8, "no factor 'mood'"),
        ("scenarios.yaml", "{reader: child}", "{}", 2, "'reader' has no level"),
        ("scenarios.yaml", "passage: The sea falls.", "passage: x\n    n_tips: 3", 10, "can't be named 'n_tips'"),
        ("scenarios.yaml", "passage: The sea falls.", "reader: y", 9, "can't be named 'reader'"),
        ("scenarios.yaml", SCENARIOS, "[]", 1, "there is no scenario"),
        ("scenarios.yaml", "The sea falls.", "2001-99-99", 9, "is no timestamp"),
        ("scenario.md", "{{ passage }}", "{{ pasage }}", 2, "'pasage' is undefined"),
        ("scenario.md", "{{ passage }}", "{% if %}", 2, "template error"),
        ("prompts/v1.md", "{{ scenario }}", "{{ typo }}", 8, "'typo' is undefined"),
        ("prompts/v1.md", "{{ scenario }}", "{{ scenario", 8, "template error"),
        ("prompts/v1.md", "are {{ n_tips }}", "are {{ typo }}", 5, "'typo' is undefined"),
        ("prompts/v1.md", "are {{ n_tips }}", "are {{ n_tips", 5, "template error"),
        ("prompts/v1.md", SYSTEM, "system: 'You are {{ typo }}.'", 3, "'typo' is undefined"),
        ("prompts/v1.md", "description", "descripton", 2, "unknown key"),
        ("prompts/v1.md", "Write {{ n_tips }}.\n{{ scenario }}\n", "", 7, "the prompt is empty"),
        ("prompts/v1.md", "---\nWrite", "Write", 1, "the front matter is not closed"),
        ("rubric.md", "---\nname: small-v1", "name: small-v1", 1, "the front matter is missing"),
        ("rubric.md", "max: 1}", "max: 1, wieght: 2}", 5, "unknown key"),
        ("rubric.md", "max: 1}", "max: -3}", 5, "from 0 to -3"),
        ("rubric.md", "## Truth", "# Truth", 5, "add a heading '## Truth'"),
        ("rubric.md", "### 2", "#### 2", 9, "does not say what 2 means"),
        ("rubric.md", "  truth:", "  composite:", 2, "composite"),
    ],
)
def test_a_mistake_is_told_with_its_file_and_line(
    tmp_path: Path, file: str, old: str, new: str, line: int, message: str
) -> None:
    (problem,) = problems(written(tmp_path, (file, old, new)))
    assert problem.startswith(f"{file}:{line}: ")
    assert message in problem


@pytest.mark.parametrize("name", ["scenario", "n_tips", "diversity"])
def test_a_factor_can_not_take_a_name_that_templates_use(tmp_path: Path, name: str) -> None:
    suite = written(
        tmp_path,
        ("suite.yaml", "  reader:\n", f"  reader: {{child: {{label: x}}}}\n  {name}:\n"),
        ("scenarios.yaml", "{reader: child}", f"{{reader: child, {name}: child}}"),
        ("scenarios.yaml", "    reader: child", f"    reader: child\n    {name}: child"),
    )
    (problem,) = problems(suite)
    assert problem.startswith(f"suite.yaml:6: a factor can't be named '{name}'")


@pytest.mark.parametrize("name", ["suite.yaml", "scenarios.yaml", "scenario.md", "rubric.md"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    suite = written(tmp_path)
    (tmp_path / name).unlink()
    assert problems(suite) == (f"{name}: the file is missing",)


def test_a_suite_without_prompts_is_told_so(tmp_path: Path) -> None:
    suite = written(tmp_path)
    (tmp_path / "prompts/v1.md").unlink()
    (problem,) = problems(suite)
    assert problem.startswith("prompts/: there is no prompt")


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    suite = written(tmp_path)
    (tmp_path / "prompts/v1.md").write_bytes(b"\xff\xfe\x00")
    (problem,) = problems(suite)
    assert problem.startswith("prompts/v1.md: can't be read: ")


def test_all_problems_come_in_one_error(tmp_path: Path) -> None:
    suite = written(
        tmp_path,
        ("suite.yaml", "output:", "outptu: 1\noutput:"),
        ("scenarios.yaml", "id: second", "idd: second"),
        ("scenario.md", "{{ passage }}", "{{ passage"),
        ("prompts/v1.md", "description", "descripton"),
        ("rubric.md", "### 2", "#### 2"),
        ("rubric.md", "## Truth", "# Truth"),
    )
    (tmp_path / "prompts/v2.md").write_text("{% if %}", encoding="utf-8")
    places = [problem.split(": ")[0] for problem in problems(suite)]
    assert sorted(places) == [
        "prompts/v1.md:2",
        "prompts/v2.md:1",
        "rubric.md:5",
        "rubric.md:9",
        "scenario.md:2",
        "scenarios.yaml:5",
        "scenarios.yaml:5",
        "suite.yaml:8",
    ]


def test_several_problems_of_one_file_come_together(tmp_path: Path) -> None:
    suite = written(
        tmp_path,
        ("prompts/v1.md", "{{ scenario }}", "{{ typo }}"),
        ("prompts/v1.md", "You are short.", "{{ another }}"),
        ("scenarios.yaml", "id: second", "id: first"),
        ("scenarios.yaml", "    reader: child", "    reader: adult"),
        ("rubric.md", "max: 1}", "max: 1, max: 1, wieght: 2}"),
    )
    assert [problem.split(": ")[0] for problem in problems(suite)] == [
        "rubric.md:5",
        "rubric.md:5",
        "scenarios.yaml:5",
        "scenarios.yaml:7",
        "prompts/v1.md:8",
        "prompts/v1.md:4",
    ]


def test_a_typo_is_told_once_and_not_for_every_scenario(tmp_path: Path) -> None:
    (problem,) = problems(written(tmp_path, ("scenario.md", "{{ passage }}", "{{ pasage }}")))
    assert "scenario first" in problem


@pytest.mark.parametrize(
    "change", [lambda text: "\ufeff" + text, lambda text: text.replace("\n", "\r\n")], ids=["mark", "CRLF"]
)
def test_files_from_a_windows_editor_are_read_the_same(tmp_path: Path, change: Callable[[str], str]) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    plain, changed = written(tmp_path / "a"), written(tmp_path / "b")
    for name, text in FILES.items():
        (tmp_path / "b" / name).write_bytes(change(text).encode())
    assert load_suite(changed).prompts["v1"].digest == load_suite(plain).prompts["v1"].digest
    assert load_suite(changed).rubric.digest == load_suite(plain).rubric.digest
    assert load_suite(changed).scenarios == load_suite(plain).scenarios


@pytest.mark.parametrize("name", ["no-such-suite", "~nobody-of-this-name/suite", "\x00"])
def test_a_suite_that_is_not_there_is_refused_with_what_to_do(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="tip"):
        load_suite(name)


def test_the_built_in_suites_load() -> None:
    assert "tip" in built_in_suites()
    for name in built_in_suites():
        assert load_suite(name).name == name


def test_a_suite_based_on_another_takes_what_it_lacks_from_there(tmp_path: Path) -> None:
    folder = Path(written(tmp_path))
    tip = load_suite("tip")
    (folder / "rubric.md").unlink()
    (folder / "suite.yaml").write_text(FILES["suite.yaml"].replace("schema: 1", "schema: 1\nbased_on: tip"))
    found = load_suite(str(folder))
    assert found.rubric.digest == tip.rubric.digest
    assert found.prompts["v1"].digest == text_digest(FILES["prompts/v1.md"]), "its own goes before"
    assert found.prompts["v2-mentor"].digest == tip.prompts["v2-mentor"].digest

    (folder / "suite.yaml").write_text(FILES["suite.yaml"].replace("schema: 1", "schema: 1\nbased_on: tips"))
    with pytest.raises(
        SuiteError, match=r"suite\.yaml:2: based_on: there is no built-in suite 'tips' \(there are tip, "
    ):
        load_suite(str(folder))


def test_a_stored_rubric_is_read_back_the_same(tmp_path: Path) -> None:
    rubric = load_suite(written(tmp_path)).rubric
    again = parse_rubric(rubric.text, "rubric.md of run 1")
    assert (again.digest, again.criteria, again.flags) == (rubric.digest, rubric.criteria, rubric.flags)


def test_a_damaged_stored_rubric_is_refused_by_its_name() -> None:
    with pytest.raises(SuiteError, match=r"rubric\.md of run 1:1"):
        parse_rubric("nothing", "rubric.md of run 1")


def test_a_loaded_suite_is_loaded_again_only_if_one_of_its_files_has_changed(tmp_path: Path) -> None:
    folder = write_starter(tmp_path / "blurbs")
    first = load_suite(str(folder))
    assert load_suite(str(folder)) is first
    prompt = folder / "prompts" / "v1.md"
    before = prompt.stat()
    prompt.write_text(prompt.read_text().replace("30 words", "20 words"))
    os.utime(prompt, ns=(before.st_atime_ns, before.st_mtime_ns))
    changed = load_suite(str(folder))
    assert changed.prompts["v1"].digest != first.prompts["v1"].digest
    (folder / "prompts" / "v3.md").write_text("Write {{ n_tips }}.")
    assert "v3" in load_suite(str(folder)).prompts
    prompt.unlink()
    assert "v1" not in load_suite(str(folder)).prompts
