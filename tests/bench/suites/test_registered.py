"""Registered suites: known by name, checked again whenever they are used, one name for one folder."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.integration.command import tipbench
from tipbench.bench.suites.load import load_suite, register_suite
from tipbench.bench.suites.registered import FILE, registered_suites, remove_registered
from tipbench.core.errors import InvalidInput, SuiteError
from tipbench.core.settings import Settings

COMMITS = Path(__file__).parents[2] / "integration" / "suites" / "commits"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(COMMITS, tmp_path / "commits"))


def test_a_registered_suite_is_known_by_its_name_from_anywhere(folder: Path, home: Path) -> None:
    suite, is_new = register_suite(str(folder), Settings())
    assert (suite.name, is_new) == ("commits", True)
    assert load_suite("commits").folder == folder
    assert register_suite(f"{folder}/../commits/", Settings())[1] is False
    assert registered_suites(Settings()) == {"commits": folder}
    assert (home / FILE).stat().st_mode & 0o777 == 0o600
    assert remove_registered("commits", Settings()) == folder
    assert registered_suites(Settings()) == {}
    with pytest.raises(InvalidInput, match=r"neither a name \(tip, tip-pool\) nor a folder"):
        load_suite("commits")


def test_one_name_is_one_suite(folder: Path, tmp_path: Path) -> None:
    register_suite(str(folder), Settings())
    other = shutil.copytree(folder, tmp_path / "other")
    with pytest.raises(InvalidInput, match=f"'commits' is registered already, in {folder}; .*unregister commits"):
        register_suite(str(other), Settings())
    (other / "suite.yaml").write_text((other / "suite.yaml").read_text().replace("name: commits", "name: tip"))
    with pytest.raises(InvalidInput, match="'tip' is the name of a built-in suite"):
        register_suite(str(other), Settings())
    assert registered_suites(Settings()) == {"commits": folder}


def test_a_suite_with_problems_is_not_registered(folder: Path) -> None:
    (folder / "rubric.md").unlink()
    with pytest.raises(SuiteError, match=r"rubric\.md: the file is missing"):
        register_suite(str(folder), Settings())
    for path in ("tip", "/a\0b", "/" + "x" * 5000, "~nobody-here"):
        with pytest.raises(InvalidInput, match=r"there is no folder '.*' on this machine"):
            register_suite(path, Settings())
    assert registered_suites(Settings()) == {}


def test_a_folder_that_went_away_or_changed_is_told_where_it_is_used(folder: Path, tmp_path: Path) -> None:
    register_suite(str(folder), Settings())
    text = (folder / "suite.yaml").read_text()
    (folder / "suite.yaml").write_text(text.replace("name: commits", "name: messages"))
    with pytest.raises(InvalidInput, match="was registered as 'commits' and is called 'messages' now"):
        load_suite("commits")
    (folder / "suite.yaml").write_text("nothing: here\n")
    with pytest.raises(SuiteError, match="unknown key"):
        load_suite("commits")
    folder.rename(tmp_path / "elsewhere")
    with pytest.raises(InvalidInput, match=f"registered in {folder}, which is not there; .*unregister commits"):
        load_suite("commits")


@pytest.mark.parametrize("content", ["{", "[]", '{"a": 1}', '{"a": ""}', "\xff", "[" * 100_000])
def test_a_damaged_list_is_told_and_never_overwritten(home: Path, folder: Path, content: str) -> None:
    (home / FILE).write_text(content, encoding="latin-1")
    with pytest.raises(InvalidInput, match=FILE):
        register_suite(str(folder), Settings())
    assert (home / FILE).read_text(encoding="latin-1") == content
    assert load_suite("tip").name == "tip", "others don't need it"
    assert load_suite(str(folder)).name == "commits"


def test_the_commands(folder: Path, tmp_path: Path) -> None:
    assert tipbench("suite", "unregister", "commits").err == (
        "Error: no suite 'commits' is registered; there are none\n"
    )
    registered = tipbench("suite", "register", os.path.relpath(folder, tmp_path), cwd=tmp_path)
    assert registered.out == f"Suite 'commits' in {folder} is registered now.\n"
    assert tipbench("suite", "check", "commits").status == 0
    assert f"commits  6 scenarios, 2 prompts, 0 anchors  {folder}" in tipbench("suite", "list").out
    (folder / "scenario.md").unlink()
    listed = tipbench("suite", "list")
    assert "tip  8 scenarios, 3 prompts, 40 anchors  built in" in listed.out
    assert "commits  can't be used: the suite in" in listed.out
    assert tipbench("suite", "unregister", "commits").out.endswith(f"{folder} was left as it is.\n")
    assert json.loads((Settings().home / FILE).read_text()) == {}


def test_a_suite_without_anchors_is_told_what_that_means(folder: Path, tmp_path: Path) -> None:
    told = "has no anchors, so nobody checks its judges: scores count without evidence"
    store = ("--mlflow-url", f"sqlite:///{tmp_path / 'm.db'}", "--models", "scripted/a", "--n-scenarios", "1")
    assert f"Suite 'commits' {told}" in tipbench("suite", "check", str(folder)).out
    assert f"Suite 'blurbs' {told}" in tipbench("suite", "new", "blurbs", cwd=tmp_path).out
    assert f"Suite 'commits' {told}" in tipbench("collect", "--suite", str(folder), *store).err
    assert told not in tipbench("suite", "check", "tip").out
    assert told not in tipbench("collect", *store).err
