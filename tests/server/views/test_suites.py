"""Suites on the server: known by name, shown with their problems, run by their folder, completed with anchors."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.server.views.conftest import EXPERIMENT
from tipbench.bench.judge.judges.interface import JudgeName
from tipbench.core.errors import InvalidInput, NotFound, Problems, SuiteError
from tipbench.server.views.run_requests import RunRequests
from tipbench.server.views.snapshots import SnapshotMemoryCache
from tipbench.server.views.store_provider import StoreProvider
from tipbench.server.views.suites import Suites, prompt_diff

COMMITS = Path(__file__).parents[2] / "integration" / "suites" / "commits"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(COMMITS, tmp_path / "commits"))


@pytest.fixture
def suites(stores: StoreProvider) -> Suites:
    return Suites(stores)


@pytest.fixture
def requests(stores: StoreProvider, snapshots: SnapshotMemoryCache) -> RunRequests:
    return RunRequests(stores, snapshots)


class Faithful:
    def __init__(self, name: str) -> None:
        self.identity = JudgeName(name)

    def score(self, file: dict[str, Any]) -> dict[str, Any]:
        for item in file["items"]:
            item["scores"] = {name: 1 + len(item["candidate"]) % 3 for name in item["scores"]}
        return file


def test_a_suite_that_broke_is_listed_with_its_problem_and_others_work(suites: Suites, folder: Path) -> None:
    suites.register(str(folder))
    assert [(line.name, line.problem, line.is_built_in) for line in suites.lines()] == [
        ("tip", "", True), ("tip-pool", "", True), ("commits", "", False),
    ]  # fmt: skip
    (folder / "rubric.md").unlink()
    (tip, _, commits) = suites.lines()
    assert tip.suite
    assert commits.suite is None
    assert "rubric.md: the file is missing" in commits.problem
    with pytest.raises(SuiteError):
        suites.get("commits")
    suites.unregister("commits")
    with pytest.raises(NotFound, match="no suite 'commits' is known here"):
        suites.get("commits")


@pytest.mark.parametrize("given", ["", ".", "tip", "../commits", "~nobody-of-that-name/x", "\0"])
def test_a_folder_is_registered_by_its_whole_path_alone(suites: Suites, given: str) -> None:
    with pytest.raises(InvalidInput, match="must be a whole path on the server's machine"):
        suites.register(given)


def test_a_suite_is_shown_by_name_only_and_never_by_a_path(suites: Suites, folder: Path) -> None:
    with pytest.raises(NotFound):
        suites.get(str(folder))


def test_a_registered_suite_runs_by_its_folder(requests: RunRequests, suites: Suites, folder: Path) -> None:
    suites.register(str(folder))
    choices = requests.choices(suite_name="commits", with_models=False)
    assert choices.suites == ["tip", "tip-pool", "commits"]
    assert (choices.suite, list(choices.prompts), choices.scenarios) == ("commits", ["v1", "v2-imperative"], 6)
    assert (choices.prefix, choices.defaults.experiment) == ("commits-bench-", "commits-bench-auto")
    assert "nobody checks its judges" in choices.warning
    options = requests.validate({"models": "scripted/a", "suite": "commits"})
    assert (options.suite, options.prompts) == (str(folder), "v1,v2-imperative")
    assert requests.estimate({"models": "scripted/a", "suite": "commits"}).cells == 12
    with pytest.raises(Problems, match="belongs to suite 'tip', not 'commits'"):
        requests.validate({"models": "scripted/a", "suite": "commits", "experiment": EXPERIMENT})
    assert requests.validate({"models": "scripted/a"}).suite == "tip"


def test_prompts_are_held_against_each_other_line_by_line(suites: Suites, folder: Path) -> None:
    prompts = suites.register(str(folder)).prompts
    lines = prompt_diff(prompts["v1"], prompts["v2-imperative"])
    assert [line.kind for line in lines] == [*["added"] * 4, "same", "added", "same", "same"]
    back = prompt_diff(prompts["v2-imperative"], prompts["v1"])
    assert [line.kind for line in back].count("removed") == 5
    assert {line.kind for line in prompt_diff(prompts["v1"], prompts["v1"])} == {"same"}


def test_an_anchor_is_accepted_once_and_only_if_judges_agreed_on_it(
    suites: Suites, folder: Path, stores: StoreProvider
) -> None:
    suites.register(str(folder))
    with stores.bench("commits-1", suite=str(folder)) as bench:
        bench.collect(models="scripted/a")
        bench.judge(Faithful("lena"))
        bench.judge(Faithful("tom"))
    view = suites.get("commits")
    assert (view.experiments, bool(view.warning)) == (["commits-1"], True)
    found = suites.proposals("commits", "commits-1")
    first, second = found.entries[:2]
    with pytest.raises(InvalidInput, match="'made-up' is not proposed any more"):
        suites.accept("commits", "commits-1", "made-up")
    assert not (folder / "anchors.yaml").exists()
    assert suites.accept("commits", "commits-1", first.id) == 1
    assert suites.accept("commits", "commits-1", first.id) == 1
    assert suites.accept("commits", "commits-1", second.id) == 2
    assert [(one.id, one.by) for one in suites.get("commits").suite.anchors] == [
        (first.id, ("lena", "tom")),
        (second.id, ("lena", "tom")),
    ]
    with pytest.raises(InvalidInput, match="is not of suite 'commits'"):
        suites.proposals("commits", EXPERIMENT)
