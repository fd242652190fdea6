"""From the bench to serving and back, as a user does it: the best row's tips are served, and earn what is reported."""

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.command import Finished, tipbench
from tests.integration.filling import filled
from tests.integration.mlflow_server import MlflowServer
from tests.recommender.served_events import Clock, Serving
from tipbench.recommender.records import Candidate

EXPERIMENT = "tip-bench-served"
NASTY = "\\u001b[2J <b>Call</b> \\ud83d =1+1"
ANSWERS = {"great": "Call Ms Roth before 19:00.", "poor": "Drink water.", "nasty": NASTY}
WORTH = {"Call": 5, "Drink": 1}
Run = Callable[..., Finished]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, empty_databases: Path) -> Path:
    """A database with three models judged, and one that fails or writes nothing."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "home").mkdir()
    (folder / "home" / "cache").symlink_to(empty_databases)
    for name, answer in ANSWERS.items():
        (folder / f"{name}.yaml").write_text(f"parameters: 1000000000\nrules:\n  - answer: '[\"{answer}\"]'\n")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TIPBENCH_HOME", str(folder / "home"))
        store = ("--experiment", EXPERIMENT, "--mlflow-url", "sqlite:///m.db")
        models = ",".join(f"scripted/{name}.yaml" for name in ANSWERS)
        collected = tipbench("collect", "--models", models, "--prompts", "v1", *store, cwd=folder)
        assert collected.status == 0, collected.err
        assert tipbench("judge", *store, "--export", "j.json", cwd=folder).status == 0
        judged = filled(json.loads((folder / "j.json").read_text(encoding="utf-8")))
        for item in judged["items"]:
            worth = next((worth for start, worth in WORTH.items() if item["candidate"].startswith(start)), None)
            item["scores"] = dict.fromkeys(item["scores"], worth) if worth else item["scores"]
        (folder / "j.json").write_text(json.dumps(judged), encoding="utf-8")
        assert tipbench("judge", *store, "--apply", "j.json", cwd=folder).status == 0
    return folder


@pytest.fixture
def recommend(prepared: Path, tmp_path: Path) -> Run:
    shutil.copy(prepared / "m.db", tmp_path / "m.db")

    def run(*words: str, experiment: str = EXPERIMENT) -> Finished:
        place = ("--experiment", experiment, "--mlflow-url", "sqlite:///m.db")
        return tipbench("recommend", *words, *place, cwd=tmp_path)

    return run


def candidates(written: str) -> list[Candidate]:
    return [Candidate.model_validate(one["candidate"]) for one in json.loads(written)]


def serve_all(home: Path, tips: list[Candidate], reward: float) -> Serving:
    serving = Serving(home / "recommender", Clock())
    for number, tip in enumerate(tips):
        serving.serve(f"u{number % 3}", f"{tip.id}-{number}", [tip])
        serving.reward(f"u{number % 3}", f"{tip.id}-{number}", reward)
    return serving


def test_the_best_rows_tips_are_served_and_their_rewards_stand_beside_the_leaderboard(
    recommend: Run, home: Path
) -> None:
    written = recommend("tips")
    assert written.status == 0, written.err
    assert "Took 8 tips of scripted/great.yaml × v1. " in written.err
    assert "Left out" not in written.err
    assert {one["text"] for one in json.loads(written.out)} == {ANSWERS["great"]}
    assert recommend("tips").out == written.out
    all_of_poor = ("tips", "--model", "scripted/poor.yaml", "--min-composite", "2")
    poor = candidates(recommend(*all_of_poor, "--category", "time_slot").out)
    assert {tip.category for tip in poor} == {"morning", "evening"}

    serve_all(home, candidates(written.out), 1.0)
    serve_all(home, poor[:4], -0.5)
    data = json.loads(recommend("rewards", "--format", "json").out)
    told = {row["model"]: row for row in data["rows"]}
    best = told["scripted/great.yaml"]
    assert (best["rank"], best["served"], best["rewarded"], best["users"]) == (1, 8, 8, 3)
    assert (best["mean_reward"], best["completed_share"]) == (1.0, 1.0)
    assert best["low"] < 1.0
    assert (told["scripted/poor.yaml"]["rank"], told["scripted/poor.yaml"]["mean_reward"]) == (3, -0.5)
    assert "scripted/nasty.yaml" not in told

    table = recommend("rewards")
    assert table.status == 0, table.err
    assert "2 of 3 rows of 'tip-bench-served' were served, 12 times to 3 users" in table.out
    assert "A policy chose what to show" in table.out
    answer, step, *lines = table.out.splitlines()
    assert answer.startswith("It can't be said yet which row users respond to best: scripted/great.yaml × v1 has")
    assert step.startswith("Next: go on serving")
    [line] = [line for line in lines if "scripted/poor.yaml" in line]
    assert "-0.50" in line
    assert "effective sample" not in table.out
    assert "effective sample" in recommend("rewards", "--verbose").out
    [great, _] = csv.DictReader(io.StringIO(recommend("rewards", "--format", "csv").out))
    assert float(great["mean_reward"]) == 1.0
    assert "| 1 | scripted/great.yaml | v1 |" in recommend("rewards", "--format", "markdown").out


def test_what_models_write_is_data(recommend: Run) -> None:
    written = recommend("tips", "--model", "scripted/nasty.yaml", "--min-composite", "2")
    assert written.status == 0, written.err
    assert "\x1b" not in written.out
    assert {one["text"] for one in json.loads(written.out)} == {json.loads(f'"{NASTY}"')}


def test_before_anything_was_served_it_says_so(recommend: Run) -> None:
    for form in ("table", "json", "markdown"):
        shown = recommend("rewards", "--format", form)
        assert shown.status == 0, shown.err
        assert "was served yet" in shown.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("tips", "--model", "nobody"), "no row of 'tip-bench-served' is nobody"),
        (("tips", "--category", "weather"), "--category 'weather' is none of persona, time_slot, scenario"),
        (("tips", "--top", "0"), "0 is not in the range"),
        (("tips", "--min-composite", "nan"), "--min-composite nan is not on the composite's scale, which is 2 to 17"),
        (("tips", "--model", "scripted/poor.yaml"), "is good enough (8 tips with a composite below 9.5); lower"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(recommend: Run, words: tuple[str, ...], says: str) -> None:
    refused = recommend(*words)
    assert (refused.status, refused.out) == (2, "")
    assert says in refused.err


@pytest.mark.parametrize("what", ["tips", "rewards"])
def test_an_experiment_that_is_not_there(recommend: Run, what: str) -> None:
    refused = recommend(what, experiment="no-such")
    assert (refused.status, refused.out) == (2, "")
    assert "no-such" in refused.err


def test_texts_come_from_a_server_too(mlflow: MlflowServer, home: Path) -> None:
    place = ("--experiment", "tip-bench-served-there", "--mlflow-url", mlflow.url)
    grid: tuple[str, ...] = ("--models", "scripted/a", "--prompts", "v1", "--n-scenarios", "2", "--n-tips", "2")
    assert tipbench("collect", *grid, *place).status == 0
    written = tipbench("recommend", "tips", *place)
    assert written.status == 0, written.err
    assert "No answer yet: nothing is judged." in written.err
    assert "Not judged, but taken: 4 tips." in written.err
    tips = candidates(written.out)
    assert len(tips) == 4
    serve_all(home, tips, 0.5)
    data: dict[str, Any] = json.loads(tipbench("recommend", "rewards", *place, "--format", "json").out)
    assert [(row["model"], row["mean_reward"]) for row in data["rows"]] == [("scripted/a", 0.5)]
