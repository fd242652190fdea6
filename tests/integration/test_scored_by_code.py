"""A suite of checks alone: scored as it is collected, scored again when a check changes, overruled by a judge."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.command import Finished, tipbench
from tests.integration.test_continuous_integration import KNOWS, SUITE
from tipbench.bench.tracking.store import RunStore


class Place:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.suite = Path(shutil.copytree(SUITE, folder / "support"))
        self.common = ("--experiment", "support-bench-1", "--mlflow-url", f"sqlite:///{folder / 'm.db'}")
        for name, rules in (("knows", KNOWS), ("guesses", {})):
            lines = [{"when": when, "answer": answer} for when, answer in rules.items()]
            script = {"parameters": 1_000_000, "rules": [*lines, {"answer": "Unfortunately, I can't say."}]}
            (folder / f"{name}.yaml").write_text(yaml.safe_dump(script), encoding="utf-8")

    def run(self, command: str, *words: str) -> Finished:
        done = tipbench(command, *self.common, *words, cwd=self.folder)
        assert done.status == 0, done.err
        return done

    def collect(self, models: str = "scripted/knows.yaml,scripted/guesses.yaml") -> Finished:
        return self.run("collect", "--suite", str(self.suite), "--models", models, "--prompts", "v1")

    def composites(self, *words: str) -> dict[str, float]:
        data = json.loads(self.run("compare", "--format", "json", *words).out)
        return {row["model"]: row["composite"] for row in data["standings"]}

    def change_rubric(self, before: str, after: str) -> None:
        path = self.suite / "rubric.md"
        text = path.read_text(encoding="utf-8")
        assert before in text
        path.write_text(text.replace(before, after), encoding="utf-8")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    found = Place(tmp_path)
    found.collect()
    return found


# Six of the eight right answers begin with a greeting. Of the guess, "no gift" holds, and it is a hollow phrase.
KNOWN, GUESSED = 3 + 6 / 8, 3 / 8 - 1


def test_it_is_compared_right_after_collecting(place: Place) -> None:
    assert "Next: tipbench compare" in place.collect().out
    shown = place.run("compare")
    assert "Scores are by code: no judge has read a text." in shown.out
    assert place.composites() == {"scripted/knows.yaml": KNOWN, "scripted/guesses.yaml": GUESSED}
    assert "Scored by code, by the checks of support-v1: 16 cells scored, 0 pending" in place.run("compare", "-v").out
    assert "nothing waits for a judge" in place.run("judge", "--status").out
    report = place.run("compare", "--format", "html").out
    assert "help.me@shop.example" in report
    assert "not scored yet" not in report


def test_a_changed_check_counts_once_it_is_named_or_collected_with(place: Place) -> None:
    place.change_rubric("greets: {weight: 1", "greets: {weight: 0")
    assert place.composites()["scripted/knows.yaml"] == KNOWN, "the rubric that it was collected with"
    assert place.composites("--suite", str(place.suite))["scripted/knows.yaml"] == 3
    assert place.composites()["scripted/knows.yaml"] == KNOWN, "nothing was written"
    assert "16 stored cells were scored again" in (done := place.collect()).out + done.err
    assert place.composites() == {"scripted/knows.yaml": 3, "scripted/guesses.yaml": GUESSED}


def test_cells_of_other_models_are_scored_again_with_the_next_one(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.collect("scripted/knows.yaml")
    place.change_rubric("greets: {weight: 1", "greets: {weight: 0")
    place.collect("scripted/guesses.yaml")
    assert place.composites() == {"scripted/knows.yaml": 3, "scripted/guesses.yaml": GUESSED}


def test_scoring_again_can_be_interrupted_at_any_run(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.change_rubric("greets: {weight: 1", "greets: {weight: 0")
    log, left = RunStore._log, 5

    def interrupted(*arguments: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise KeyboardInterrupt
        log(*arguments)

    monkeypatch.setattr(RunStore, "_log", interrupted)
    words = ("--suite", str(place.suite), "--models", "scripted/knows.yaml,scripted/guesses.yaml", "--prompts", "v1")
    assert tipbench("collect", *place.common, *words, cwd=place.folder).status == 130
    monkeypatch.undo()
    assert place.run("compare").status == 0, "what was scored by one of the two rubrics is shown"
    place.collect()
    assert place.composites() == {"scripted/knows.yaml": 3, "scripted/guesses.yaml": GUESSED}


def test_a_changed_check_of_one_scenario_changes_that_scenario_alone(place: Place) -> None:
    path = place.suite / "scenarios.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("30 days", "60 days"), encoding="utf-8")
    assert place.composites("--suite", str(place.suite)) == {
        "scripted/knows.yaml": KNOWN - 3 / 8,
        "scripted/guesses.yaml": GUESSED,
    }


def test_a_judge_overrules_code(place: Place) -> None:
    file = place.folder / "judge.json"
    place.run("judge", "--export", str(file), "--judge", "lena")
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    wrong = [item for item in data["items"] if "30 days" in item["candidate"]]
    assert wrong
    assert wrong[0]["checked"] == {"right": True, "greets": True, "hollow": False, "overlong": False}
    for item in wrong:
        item["flags"]["right"] = False
    file.write_text(json.dumps(data), encoding="utf-8")
    place.run("judge", "--apply", str(file))
    assert place.composites()["scripted/knows.yaml"] == pytest.approx(KNOWN - 3 / 8)
    shown = place.run("compare", "-v").out
    assert "Judged by lena" in shown


def test_two_experiments_are_held_against_each_other_by_the_checks_of_now(place: Place) -> None:
    place.change_rubric("greets: {weight: 1", "greets: {weight: 0")
    later = ("--experiment", "support-bench-2", *place.common[2:])
    words = ("--suite", str(place.suite), "--models", "scripted/knows.yaml", "--prompts", "v1")
    assert tipbench("collect", *later, *words, cwd=place.folder).status == 0
    done = tipbench("compare", *later, "--against", "support-bench-1", "--format", "json", cwd=place.folder)
    assert done.status == 0, done.err
    assert [(one["before"], one["now"]) for one in json.loads(done.out)["changes"]] == [(3, 3)]


def test_there_is_nothing_to_decide_in_rounds(place: Place) -> None:
    words = ("--suite", str(place.suite), "--models", "scripted/knows.yaml", "--experiment", "rounds")
    refused = tipbench("decide", *words, *place.common[2:], cwd=place.folder)
    assert refused.status == 2
    assert "scored by code alone" in refused.err
