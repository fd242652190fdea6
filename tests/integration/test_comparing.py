"""Comparing as a user does it: every format, two experiments, the gate, and experiments that can tell little."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from statistics import fmean

import pytest

from tests.integration.command import Finished, tipbench
from tests.integration.filling import fill, filled

EXPERIMENT = "tip-bench-compared"
NASTY = "<script>alert(1)</script><img src=x onerror=alert(2)> [a](javascript:alert(3)) \\u001b[2J"
ANSWERS = {
    "great": "Call Ms Roth for the door code before 19:00, then load the crates with Jule.",
    "fine": "Do the task that is due first, then the next one.",
    "poor": "Drink water.",
    "nasty": NASTY,
}
Compare = Callable[..., Finished]
WORTH = {"Call Ms Roth": 5, "Do the task": 4, "Drink": 1, "<script>": 2}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, empty_databases: Path) -> Path:
    """A database with three experiments: 4 rows on all scenarios, judged; the same again, worse; one with failures."""
    folder = tmp_path_factory.mktemp("compared")
    home = folder / "home"
    home.mkdir()
    (home / "cache").symlink_to(empty_databases)
    for name, answer in ANSWERS.items():
        (folder / f"{name}.yaml").write_text(f"parameters: 1000000000\nrules:\n  - answer: '[\"{answer}\"]'\n")
    (folder / "broken.yaml").write_text("parameters: 1000000000\nrules:\n  - fail: the runner died\n")
    models = ",".join(f"scripted/{name}.yaml" for name in ANSWERS)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TIPBENCH_HOME", str(home))
        for experiment, lower in ((EXPERIMENT, 0), ("tip-bench-later", 2)):
            store = ("--experiment", experiment, "--mlflow-url", "sqlite:///m.db")
            assert tipbench("collect", "--models", models, "--prompts", "v1", *store, cwd=folder).status == 0
            assert tipbench("judge", *store, "--export", f"{experiment}.json", cwd=folder).status == 0
            _judge(folder / f"{experiment}.json", lower)
            assert tipbench("judge", *store, "--apply", f"{experiment}.json", cwd=folder).status == 0
        store = ("--experiment", "tip-bench-broken", "--mlflow-url", "sqlite:///m.db")
        words = ("collect", "--models", "scripted/broken.yaml", "--prompts", "v1", "--n-scenarios", "2")
        assert tipbench(*words, *store, cwd=folder).status == 1
    return folder


def _judge(path: Path, lower: int) -> None:
    """Scores by what was written; the later experiment's best row lost."""
    data = filled(json.loads(path.read_text(encoding="utf-8")))
    for number, item in enumerate(data["items"]):
        for start, worth in WORTH.items():
            if item["candidate"].startswith(start):
                less = lower if worth == 5 else 0
                scores = dict.fromkeys(item["scores"], worth - less)
                scores["tone"] = max(1, scores["tone"] - number % 2)
                item["scores"] = scores
                item["note"] = "<b>by the text</b>"
    path.write_text(json.dumps(data), encoding="utf-8")


@pytest.fixture
def compare(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compare:
    shutil.copy(prepared / "m.db", tmp_path / "m.db")
    monkeypatch.setenv("TIPBENCH_HOME", str(prepared / "home"))

    def run(*words: str, experiment: str = EXPERIMENT) -> Finished:
        return tipbench(
            "compare",
            "--experiment",
            experiment,
            "--mlflow-url",
            f"sqlite:///{prepared / 'm.db'}",
            *words,
            cwd=tmp_path,
        )

    return run


def test_the_table_marks_who_may_be_the_best_and_draws_intervals(compare: Compare) -> None:
    shown = compare("--verbose")
    assert shown.status == 0, shown.err
    rows = [line for line in shown.out.splitlines() if "·0·0" in line]
    lines = {line.split("scripted/")[1].split(".yaml")[0]: line for line in rows}
    assert set(lines) == set(ANSWERS)
    assert "●" in lines["great"].split("scripted/")[0]
    assert "●" not in lines["poor"].split("scripted/")[0]
    assert all("━" in line for line in lines.values())
    assert "On 8 scenarios of 4 personas, " in shown.out


def test_every_format_tells_the_same(compare: Compare) -> None:
    data = json.loads(compare("--format", "json").out)
    best = data["standings"][0]
    assert (best["model"], best["top"]) == ("scripted/great.yaml", True)
    figure = f"{best['composite']:.2f}"
    for form in ("table", "csv", "markdown", "html"):
        shown = compare("--format", form)
        assert shown.status == 0, shown.err
        assert figure in shown.out or str(best["composite"]) in shown.out, form
        assert "\x1b" not in shown.out


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_report_shows_what_models_and_judges_wrote_and_runs_none_of_it(compare: Compare) -> None:
    page = _Tags()
    page.feed(compare("--format", "html").out)
    assert "<script>alert(1)</script>" in page.text
    assert "<b>by the text</b>" in page.text
    assert "Call Ms Roth for the door code" in page.text
    assert not page.tags & {"script", "img", "iframe", "link", "object"}
    assert not [name for name in page.attributes if name.startswith("on")]


def test_slices_by_a_factor_of_the_suite(compare: Compare) -> None:
    shown = compare("--by", "time_slot")
    assert "Composite by time_slot" in shown.out
    assert "morning" in shown.out
    refused = compare("--by", "weather")
    assert refused.status == 2
    assert "names no factor of 'tip-bench-compared', which has persona, time_slot" in refused.err
    assert refused.out == ""


def test_two_experiments_cell_by_cell(compare: Compare) -> None:
    data = json.loads(compare("--against", EXPERIMENT, "--format", "json", experiment="tip-bench-later").out)
    verdicts = {one["model"]: one["verdict"] for one in data["changes"]}
    assert verdicts["scripted/great.yaml"] == "worse"
    assert verdicts["scripted/poor.yaml"] == "may be chance"
    assert "▼" in compare("--against", EXPERIMENT, experiment="tip-bench-later").out
    for form in ("csv", "markdown"):
        assert "worse" in compare("--against", EXPERIMENT, "--format", form, experiment="tip-bench-later").out


def test_the_gate_closes_on_evidence_alone(compare: Compare) -> None:
    assert compare("--gate", "scripted/great.yaml×v1").status == 0
    lost = compare("--gate", "scripted/poor.yaml×v1")
    assert lost.status == 1
    assert "Gate: scripted/poor.yaml × v1 lost" in lost.out
    later = ("--gate", "scripted/great.yaml×v1", "--against", EXPERIMENT)
    assert compare(*later, experiment="tip-bench-later").status == 1
    assert compare(*later, "--min-gain", "-12", experiment="tip-bench-later").status == 0
    unjudged = ("--gate", "scripted/broken.yaml×v1", "--against", EXPERIMENT)
    waiting = compare(*unjudged, experiment="tip-bench-broken")
    assert waiting.status == 0
    assert "scripted/broken.yaml × v1 has no scores yet, so the gate is undecided." in waiting.out
    piped = compare("--gate", "scripted/poor.yaml×v1", "--format", "json")
    assert json.loads(piped.out)["experiment"] == EXPERIMENT
    assert "Gate:" in piped.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--min-gain", "1"), "--min-gain goes with --gate"),
        (("--gate", "nobody×v1"), "names no row"),
        (("--against", "tip-bench-nowhere"), "there is no experiment 'tip-bench-nowhere'"),
        (("--against", EXPERIMENT, "--format", "html"), "--against has no --format html"),
        (("--against", EXPERIMENT), f"--against names '{EXPERIMENT}' itself"),
        (("--gate", ""), "--gate is empty"),
        (("--against", "tip-bench-broken"), "'tip-bench-broken' has no scores yet"),
        (("--by", "persona", "--format", "json"), "--by goes with the table"),
        (("--min-gain", "nan", "--gate", "scripted/great.yaml×v1"), "--min-gain"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(compare: Compare, words: tuple[str, ...], says: str) -> None:
    refused = compare(*words)
    assert (refused.status, refused.out) == (2, "")
    assert says in refused.err


def test_an_experiment_in_which_everything_failed_is_shown_in_every_format(compare: Compare) -> None:
    for form in ("table", "json", "csv", "markdown", "html"):
        shown = compare("--format", form, experiment="tip-bench-broken")
        assert shown.status == 0, shown.err
        assert "broken" in shown.out
    said = compare(experiment="tip-bench-broken").out
    assert "No answer yet: all 2 cells failed, the first with: the runner died." in said
    assert "again with --retry-failed" in said


def test_the_lines_of_cells_alone_give_back_the_boards_means(tmp_path: Path) -> None:
    """Empty answers were left out of the file, so that its means reversed the leaderboard's order."""
    always = """{when: '', answer: '["Begin.", "End."]'}"""
    (tmp_path / "half.yaml").write_text(f"parameters: 1000\nrules: [{{when: lectrician, answer: ''}}, {always}]")
    (tmp_path / "whole.yaml").write_text(f"parameters: 1000\nrules: [{always}]")
    models = ",".join(f"scripted/{tmp_path / name}.yaml" for name in ("half", "whole"))
    common = ("--experiment", "tip-bench-empty", "--mlflow-url", f"sqlite:///{tmp_path / 'm.db'}")
    grid = ("--models", models, "--prompts", "v1", "--n-tips", "2")
    assert tipbench("collect", *common, *grid).status == 0
    assert tipbench("judge", *common, "--export", str(tmp_path / "judge.json")).status == 0
    fill(tmp_path / "judge.json")
    assert tipbench("judge", *common, "--apply", str(tmp_path / "judge.json")).status == 0
    done = tipbench("compare", *common, "--format", "json", "--scores", str(tmp_path / "scores.json"))
    board = {row["model"]: row["composite"] for row in json.loads(done.out)["standings"]}
    lines = json.loads((tmp_path / "scores.json").read_text())
    means = {
        model: fmean(line["composite"] for line in lines if line["kind"] == "cell" and line["model"] == model)
        for model in board
    }
    assert means == pytest.approx(board)
    kinds = Counter((line["kind"], line["model"] == min(board)) for line in lines)
    assert kinds["empty", True] > 0
    assert kinds["cell", True] == kinds["cell", False] == 8
    assert "empty answers, and 16 cells' resulting scores" in done.err
