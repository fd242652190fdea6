"""The bench as a notebook uses it."""

import re
import shutil
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tipbench
from tests.bench.tracking.shared_mlflow import SharedMlflow
from tipbench import Bench, Context, Observer
from tipbench.bench import bench as bench_module
from tipbench.bench.collect.plan import Plan
from tipbench.bench.judge.apply import ApplyOptions
from tipbench.bench.judge.judges.interface import JudgeName
from tipbench.bench.records import Outcome
from tipbench.bench.suites.load import load_suite
from tipbench.bench.tracking.descriptions import DESCRIPTION, summary_of, with_summary
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import InvalidInput, NothingPending, NothingStored, Problems
from tipbench.core.settings import Settings

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
SMALL: dict[str, Any] = {"models": "scripted/ant,scripted/bee", "prompts": "v1", "n_scenarios": 2}


class Seen(Observer):
    def __init__(self) -> None:
        self.planned_cells = 0
        self.labels: list[str] = []
        self.notes: list[str] = []

    def planned(self, plan: Plan) -> None:
        self.planned_cells = len(plan.to_do)

    def done(self, outcome: Outcome) -> None:
        self.labels.append(outcome.cell.label)

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def bench(tmp_path: Path, seen: Seen) -> Bench:
    return Bench("tip-bench-x", mlflow_url=f"sqlite:///{tmp_path / 'm.db'}", context=Context(observer=seen))


def test_the_page_of_the_docs_does_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 4
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    shown = capsys.readouterr().out
    assert "16 cells answered" in shown
    assert "candidates scored by 'lena'" in shown
    assert "1 cells to generate" in shown
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    assert set(names["scores"]["kind"]) >= {"judge", "cell"}
    assert len(names["table"]) == 4


def test_it_is_watched_and_goes_on_where_it_was(bench: Bench, seen: Seen) -> None:
    with bench:
        assert len(bench.plan(**SMALL).to_do) == 4
        assert seen.labels == []
        first = bench.collect()
        assert (first.answered, seen.planned_cells, len(seen.labels)) == (4, 4, 4)
        again = bench.collect(n_scenarios=3)
        assert (again.answered, again.stored_before) == (2, 4)
        assert bench.collect(fresh=True).answered == 6
        assert seen.notes[-1].startswith("6 stored cells no longer count")
        assert [one.name for one in bench.experiments()] == ["tip-bench-x"]


def test_a_judge_of_ones_own(bench: Bench) -> None:
    class Kind:
        identity = JudgeName("kind")

        def score(self, file: dict[str, Any]) -> dict[str, Any]:
            items = [{**item, "scores": dict.fromkeys(item["scores"], 4)} for item in file["items"]]
            return {**file, "items": items}

    with bench:
        bench.collect(**SMALL)
        applied = bench.judge(Kind(), how=ApplyOptions(accept_drift="kind to everybody"))
        assert (applied.judge, applied.runs) == ("kind", 4)
        with pytest.raises(NothingPending, match="waits for judge 'kind'"):
            bench.judge(Kind())
        assert bench.pending("ana") == 4


def test_what_is_wrong_is_told_before_anything_is_made(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(Problems, match="n_tip: unknown key; did you mean n_tips"):
        Bench("tip-bench-x", n_tip=3)
    with bench:
        with pytest.raises(NothingStored):
            bench.compare()
        with pytest.raises(InvalidInput, match="has no prompt 'v9'"):
            bench.collect(models="scripted/ant", prompts="v9")
    assert list(tmp_path.iterdir()) == []


def test_an_experiment_that_is_not_there(bench: Bench) -> None:
    with bench:
        bench.collect(**SMALL)
    other = Bench("tip-bench-y", context=bench.context, mlflow_url=bench.options.mlflow_url)
    with other, pytest.raises(InvalidInput, match="there is no experiment 'tip-bench-y'"):
        other.compare()


def test_settings_can_be_passed_in(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    settings = Settings({"TIPBENCH_HOME": str(tmp_path / "own"), "MLFLOW_TRACKING_URI": url})
    with Bench("tip-bench-x", context=Context(settings)) as bench:
        bench.collect(**SMALL)
        assert bench.store.address == url
    assert (tmp_path / "own" / "experiments").is_dir()


def test_the_package_offers_its_front_doors_and_nothing_else() -> None:
    assert all(getattr(tipbench, name) for name in tipbench.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Benches'"):
        tipbench.Benches  # noqa: B018


class TestAnswerInMlflow:
    """The experiment's description says what its leaderboard says, for readers of MLflow's own pages."""

    def test_it_follows_the_results(self, bench: Bench) -> None:
        with bench:
            bench.collect(**SMALL)
            assert _described(bench).startswith("No answer yet: nothing is judged.\n\n**Next:** judge 4 cells")
            collected = _described(bench)
            bench.publish_answer(bench.snapshot(), bench.compare())
            assert _described(bench) == collected, "said without a leaderboard, it is the leaderboard's answer"
            bench.judge("lexical")
            assert _described(bench).startswith("No answer yet: scores come from simple rules")
            text = bench.experiment.tags[DESCRIPTION]
            assert "| scripted/ant × v1 |" in text
            assert bench.compare().answer.says in text
            later = replace(bench.context, clock=lambda: time.time() + 86_400)
            with Bench("tip-bench-x", context=later, mlflow_url=bench.options.mlflow_url) as tomorrow:
                tomorrow.compare()
            assert bench.experiment.tags[DESCRIPTION] == text, "the same answer is not written again"

    def test_cells_that_are_added_to_judged_ones_change_it(self, bench: Bench) -> None:
        with bench:
            bench.collect(**SMALL)
            bench.judge("lexical")
            before = _described(bench)
            bench.collect(n_scenarios=3)
            assert _described(bench) != before
            assert _described(bench).startswith("No answer yet: scores come from simple rules")

    def test_with_very_many_cells_it_is_not_worked_out_for_every_batch(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(bench_module, "_MAX_PUBLISHED", 3)
        with bench:
            bench.collect(**SMALL)
            assert _described(bench).startswith("There are new texts.\n\n**Next:** see what they say")
            bench.judge("lexical")
            step = f"**Next:** see what they say: `tipbench compare --experiment {bench.options.experiment}`"
            assert _described(bench) == f"There are new scores.\n\n{step}\n\n{_described(bench).splitlines()[-1]}"
            says = bench.compare().answer.says
            bench.publish_answer(bench.snapshot(), bench.compare())
            assert _described(bench).startswith(says)

    def test_own_words_stay(self, bench: Bench) -> None:
        with bench:
            bench.collect(**SMALL)
            written = bench.experiment.tags[DESCRIPTION]
            bench.store.describe_experiment(bench.experiment, f"{written}\n\nFor the spring campaign.")
            bench.judge("lexical")
            assert _described(bench).startswith("No answer yet: scores come from simple rules")
            assert bench.experiment.tags[DESCRIPTION].endswith("-->\n\nFor the spring campaign.")
            bench.store.describe_experiment(bench.experiment, "Only mine.")
            bench.compare()
            bench.collect(n_scenarios=3)
            assert bench.experiment.tags[DESCRIPTION] == "Only mine."

    def test_the_answer_by_another_rubric_is_not_the_experiments(self, bench: Bench, tmp_path: Path) -> None:
        with bench:
            bench.collect(**SMALL)
            bench.judge("lexical")
        stricter = tmp_path / "stricter"
        shutil.copytree(load_suite("tip").folder, stricter)
        rubric = stricter / "rubric.md"
        rubric.write_text(rubric.read_text().replace("# Rubric tip-v1", "# Rubric tip-v1, read more strictly"))
        url = bench.options.mlflow_url
        with Bench("tip-bench-x", context=bench.context, mlflow_url=url, suite=str(stricter)) as other:
            assert other.compare().answer.says == "No answer yet: nothing is judged."
            assert _described(other).startswith("No answer yet: scores come from simple rules")

    def test_somebody_who_writes_doesnt_hold_up_a_comparison(
        self, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tipbench.bench.tracking.store._DESCRIBE_S", 0.1)
        with bench:
            bench.collect(**SMALL)
            bench.store.describe_experiment(bench.experiment, with_summary(None, "Old.") or "")
            with closing(sqlite3.connect(tmp_path / "m.db")) as other:
                other.execute("BEGIN IMMEDIATE")
                started = time.monotonic()
                assert bench.compare().answer.says == "No answer yet: nothing is judged."
                assert time.monotonic() - started < 5, "other writes wait a minute"
            assert _described(bench) == "Old."
            bench.compare()
            assert _described(bench).startswith("No answer yet")

    def test_one_who_may_only_read_gets_the_leaderboard(self, tmp_path: Path) -> None:
        api = SharedMlflow(f"sqlite:///{tmp_path / 'm.db'}")
        context = Context(Settings({"TIPBENCH_HOME": str(tmp_path / "home")}), store=RunStore(api))
        with Bench("tip-bench-x", context=context) as bench:
            bench.collect(**SMALL)
            bench.store.describe_experiment(bench.experiment, with_summary(None, "Old.") or "")
            api.refuses_marks = True
            assert len(bench.compare().rows) == 2
            assert _described(bench) == "Old."
        api.close()


def _described(bench: Bench) -> str:
    return summary_of(bench.experiment.tags[DESCRIPTION]) or ""
