"""A decision from nothing to its end, with a judge whose preferences are known."""

import json
import random
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.integration.command import tipbench
from tipbench.bench.bench import Bench
from tipbench.bench.compare.check import check_row
from tipbench.bench.compare.html.page import as_html
from tipbench.bench.decide.rounds import Round
from tipbench.bench.judge.apply import ApplyOptions
from tipbench.bench.judge.judges.interface import JudgeName
from tipbench.bench.suites.load import load_suite
from tipbench.bench.tracking.batches import BATCH, batch_file, find_batch, read_batch
from tipbench.bench.tracking.decisions import find_decision, read_account
from tipbench.bench.tracking.descriptions import DESCRIPTION
from tipbench.bench.tracking.runs import CELL, KIND
from tipbench.core.errors import InvalidInput, JudgeLater, NothingPending
from tipbench.statistics.betting import decide

ANCHORS = {one.candidate: one.scores for one in load_suite("tip-pool").anchors}
LEVELS = {"good.yaml": 5, "fair.yaml": 4, "poor.yaml": 2}


class KnownJudge:
    """Scores a candidate by the level that it names, with some noise; remembers what it was asked."""

    def __init__(self, name: str = "known", stops_after: int | None = None) -> None:
        self.identity = JudgeName(name)
        self.asked: Counter[tuple[str, str]] = Counter()
        self._stops_after = stops_after

    def score(self, file: dict[str, Any]) -> dict[str, Any]:
        if self._stops_after is not None:
            self._stops_after -= 1
            if self._stops_after < 0:
                raise KeyboardInterrupt
        for item in file["items"]:
            agreed = ANCHORS.get(item["candidate"])
            for criterion in item["scores"]:
                item["scores"][criterion] = agreed[criterion] if agreed else self._given(item, criterion)
            if agreed is None:
                self.asked[item["scenario"], item["candidate"]] += 1
        return file

    def _given(self, item: dict[str, Any], criterion: str) -> int:
        level = int(item["candidate"].rpartition(" ")[2])
        drawn = random.Random(f"{item['scenario']}/{item['candidate']}/{criterion}")
        return min(5, max(1, round(level + drawn.gauss(0, 0.7))))


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> str:
    monkeypatch.chdir(tmp_path)
    for name, level in LEVELS.items():
        answer = json.dumps(
            [f"Take the next step of {name[:4]}, at level {level}", f"Or another one, at level {level}"]
        )
        Path(name).write_text(json.dumps({"parameters": 1_000_000, "rules": [{"answer": answer}]}))
    return ",".join(f"scripted/{name}" for name in LEVELS)


def decided(models: str, judge: KnownJudge | str | None, **more: Any) -> tuple[Round, Bench]:
    with Bench("tip-pool-x", suite="tip-pool", mlflow_url="sqlite:///m.db") as bench:
        return bench.decide(judge, models=models, prompts="v1", n_tips=2, **more), bench


def test_a_decision_is_made_with_few_judgements_and_can_be_recomputed(models: str) -> None:
    judge = KnownJudge()
    found, _ = decided(models, judge, good_enough=0.0)
    assert found.verdict.is_proven
    assert found.verdict.pick == "scripted/good.yaml × v1"
    assert found.verdict.state.judgements < 3 * 60
    assert sum(judge.asked.values()) <= found.spent
    assert "are the best on average" in found.verdict.says
    again, _ = decided(models, KnownJudge("nobody"), good_enough=0.0)
    assert again.verdict.as_data() == found.verdict.as_data()


def test_rows_that_are_out_are_generated_no_more(models: str) -> None:
    found, _ = decided(models, KnownJudge(), good_enough=0.0)
    with Bench("tip-pool-x", suite="tip-pool", mlflow_url="sqlite:///m.db") as bench:
        cells = Counter(run.params["model"] for run in bench.store.runs(bench.experiment, {KIND: CELL}))
    poor = found.verdict.rows.index("scripted/poor.yaml × v1")
    out_after = found.verdict.state.out_after[poor]
    assert out_after is not None
    assert cells["scripted/poor.yaml"] <= out_after + 12
    assert cells["scripted/poor.yaml"] < len(found.plan.items)


def test_a_comparison_shows_the_account_and_tests_nothing_beside_it(models: str) -> None:
    found, _ = decided(models, KnownJudge(), good_enough=0.0)
    with Bench("tip-pool-x", mlflow_url="sqlite:///m.db") as bench:
        board = bench.compare()
        assert board.answer.says == found.verdict.says
        assert (board.answer.verdict, board.answer.expected_loss) == ("winner", found.verdict.expected_loss)
        assert [row.model for row in board.rows] == ["scripted/good.yaml", "scripted/fair.yaml", "scripted/poor.yaml"]
        assert all(row.rank is None and not row.intervals for row in board.rows)
        assert not any(one.interval for row in board.rows for levels in row.slices.values() for one in levels.values())
        assert board.effects == "a decision judges some rows on more scenarios than others"
        assert bench.experiment.tags[DESCRIPTION].count("are the best on average") == 1, "MLflow says the same"
        assert check_row(board, "scripted/good.yaml×v1", 0.0).outcome == "held"
        assert check_row(board, "scripted/poor.yaml×v1", 0.0).outcome == "lost"
        assert check_row(board, "scripted/good.yaml×v1", 1.0).outcome == "open"
        page = as_html(bench.report())
    assert "are the best on average" in page
    assert "95 % interval holds" not in page
    compared = tipbench("compare", "--experiment", "tip-pool-x", "--mlflow-url", "sqlite:///m.db", "--against", "other")
    assert (compared.status, "--against tests a fixed sample" in compared.err) == (2, True)


def test_an_open_decision_is_compared_by_its_account_too(models: str) -> None:
    found, _ = decided(models, KnownJudge(), good_enough=0.0, budget=30)
    with Bench("tip-pool-x", mlflow_url="sqlite:///m.db") as bench:
        answer = bench.compare().answer
    assert (answer.verdict, answer.says) == ("open", found.verdict.says)
    assert answer.next.command == "tipbench decide --experiment tip-pool-x"


def test_stopped_in_the_middle_it_goes_on_to_the_same_decision(models: str, tmp_path: Path) -> None:
    whole, _ = decided(models, KnownJudge(), good_enough=0.0)
    (tmp_path / "m.db").unlink()
    judge = KnownJudge(stops_after=2)
    with pytest.raises(KeyboardInterrupt):
        decided(models, judge, good_enough=0.0)
    later = KnownJudge()
    found, _ = decided(models, later, good_enough=0.0)
    assert found.verdict.pick == whole.verdict.pick
    assert found.verdict.is_proven
    assert not judge.asked.keys() & later.asked.keys(), "nothing is judged twice"
    assert found.verdict.restarts == 0


def test_a_first_batch_of_a_new_judge_has_twelve_anchors(models: str) -> None:
    decided(models, KnownJudge(stops_after=1), good_enough=0.0, budget=30)
    with Bench("tip-pool-x", suite="tip-pool", mlflow_url="sqlite:///m.db") as bench:
        (run,) = bench.store.runs(bench.experiment, {KIND: BATCH})
        kinds = Counter(slot.kind for slot in read_batch(bench.store, run).slots)
        first = Counter(slot.kind for slot in read_batch(bench.store, run).slots[:20])
    assert kinds["anchor"] == first["anchor"] == 12
    assert kinds["candidate"] == 12


@pytest.mark.parametrize("budget", [25, 26, 41])
def test_a_budget_counts_what_judges_are_given(models: str, budget: int) -> None:
    found, _ = decided(models, KnownJudge(), good_enough=0.0, budget=budget)
    assert not found.verdict.is_decided
    assert found.spent <= budget
    assert (found.spent > 0) == (budget >= 26)


def test_a_batch_on_hold_starts_the_account_over(models: str) -> None:
    found, _ = decided(models, KnownJudge(), good_enough=0.0, budget=60)
    assert found.verdict.state.items
    with Bench("tip-pool-x", suite="tip-pool", mlflow_url="sqlite:///m.db") as bench:
        bench.set_options()
        decision = find_decision(bench.store, bench.experiment)
        assert decision is not None
        first = sorted(bench.store.runs(bench.experiment, {KIND: BATCH}), key=lambda run: run.started_ms)[0]
        file = find_batch(bench.store, bench.experiment, first.tags["tipbench.batch"])
        changed = KnownJudge().score(batch_file(bench.store, file))
        for item in changed["items"]:
            item["scores"] = dict.fromkeys(item["scores"], 3)
        bench.apply(changed, ApplyOptions(replace=True))
        later = bench.look()
        assert later.verdict.restarts == 1
        assert later.verdict.rules.wealth == 40
        assert bench.look().verdict.restarts == 1, "looking again changes nothing"


def test_another_decision_needs_another_experiment(models: str) -> None:
    decided(models, KnownJudge(), budget=30)
    with pytest.raises(InvalidInput, match="'tip-pool-x' began with --claim pool, and accounts can't be changed after"):
        decided(models, KnownJudge(), claim="new")
    with pytest.raises(InvalidInput, match=r"this decision began with models '.*', and .*; leave models '.*' out"):
        decided("scripted/good.yaml,scripted/poor.yaml", KnownJudge())
    with pytest.raises(InvalidInput, match=r"this decision began with temperature 0\.7, and goes on with that"):
        decided(models, KnownJudge(), temperature=0.1)


def test_it_goes_on_by_the_experiments_name_alone(models: str) -> None:
    first, _ = decided(models, KnownJudge(), claim="new", good_enough=0.3, budget=30)
    with Bench("tip-pool-x", mlflow_url="sqlite:///m.db") as bench:
        found = bench.decide(KnownJudge(), budget=500)
        assert bench.options.n_tips == 2
    assert found.plan == first.plan
    assert found.budget == 500
    assert found.verdict.is_decided


def test_one_row_is_no_decision_and_leaves_nothing_behind(models: str) -> None:
    with pytest.raises(InvalidInput, match=r"a decision is between rows, and scripted/good\.yaml × v1 is only"):
        decided("scripted/good.yaml", KnownJudge())
    with pytest.raises(InvalidInput, match=r"script absent\.yaml can't be used"):
        decided("scripted/good.yaml,scripted/absent.yaml", KnownJudge())
    with Bench("tip-pool-x", mlflow_url="sqlite:///m.db") as bench:
        assert bench.experiments() == []


def test_provisional_scores_decide_nothing(models: str) -> None:
    with pytest.raises(InvalidInput, match="the scores of 'lexical' are provisional and never count"):
        decided(models, "lexical")


class LaterJudge(KnownJudge):
    """Answers later, as a webhook may."""

    def score(self, file: dict[str, Any]) -> dict[str, Any]:
        self.file = super().score(file)
        raise JudgeLater("the judge will answer later", file["batch"], len(file["items"]))


def test_a_judge_that_answers_later_is_waited_for(models: str) -> None:
    judge = LaterJudge()
    found, _ = decided(models, judge)
    assert found.verdict.state.items == 0
    assert len(found.open_batches) == 1
    with Bench("tip-pool-x", suite="tip-pool", mlflow_url="sqlite:///m.db") as bench:
        bench.apply(judge.file)
        assert bench.look().verdict.state.items == 4


class ReversedJudge(KnownJudge):
    """Gives the opposite of what is agreed on."""

    def score(self, file: dict[str, Any]) -> dict[str, Any]:
        scored = super().score(file)
        for item in scored["items"]:
            item["scores"] = {criterion: 6 - score for criterion, score in item["scores"].items()}
        return scored


def test_a_judge_on_hold_does_not_go_on_for_ever(models: str) -> None:
    found, _ = decided(models, ReversedJudge("reversed"), good_enough=0.0)
    assert len(found.applied) == 1
    assert found.verdict.state.items == 0
    other, _ = decided(models, KnownJudge("faithful"), good_enough=0.0)
    assert other.verdict.pick == "scripted/good.yaml × v1"
    assert set(other.judges.values()) == {"faithful"}, "what is on hold is free for others"


def test_several_judges_work_at_once_on_different_items(models: str) -> None:
    """Each item goes to one judge, nothing goes to two, and the account is the one of all scores in their order."""
    judges = {name: KnownJudge(name) for name in ("ann", "bob", "cy")}
    drawn = random.Random(4)
    with Bench("tip-pool-x", suite="tip-pool", mlflow_url="sqlite:///m.db") as bench:
        found = bench.decide(models=models, prompts="v1", n_tips=2, good_enough=0.0)
        held: dict[str, dict[str, Any]] = {}
        while found.is_open:
            name = drawn.choice(sorted(judges))
            if name in held:
                bench.apply(judges[name].score(held.pop(name)))
            else:
                with suppress(NothingPending):
                    held[name] = bench.new_batch(judges[name].identity).file
            found = bench.decide()
        account = read_account(bench.store, found.run)
    asked = Counter[tuple[str, str]]()
    for judge in judges.values():
        asked += judge.asked
    assert all(judge.asked for judge in judges.values())
    scenarios = [{scenario for scenario, _ in judge.asked} for judge in judges.values()]
    assert sum(map(len, scenarios)) == len(set.union(*scenarios)), "no item is split between judges"
    assert found.verdict.pick == "scripted/good.yaml × v1"
    assert found.verdict.restarts == 0
    seen = np.array([[np.nan if one is None else one for one in line] for line in account["scores"]])
    again = decide(seen, found.verdict.rules)
    assert again.winner == found.verdict.state.winner
    assert [round(one, 9) for one in again.wealth["pool"]] == [
        round(row["wealth"]["pool"], 9) for row in account["rows"]
    ]


def test_it_can_be_stopped_and_goes_on(models: str) -> None:
    decided(models, KnownJudge(), good_enough=0.0, budget=60)
    with Bench("tip-pool-x", suite="tip-pool", mlflow_url="sqlite:///m.db") as bench:
        stopped = bench.stop_decision("lena")
        assert stopped.verdict.next == "lena stopped it; take scripted/good.yaml × v1, or go on with more"
        assert not stopped.is_open
        assert stopped.wanted_cells == set()
        with pytest.raises(NothingPending, match="nothing is to be judged now: lena stopped it"):
            bench.new_batch(JudgeName("lena"))
        assert bench.decide(budget=1000).is_open


def test_judge_exports_what_the_decision_needs_next(models: str) -> None:
    with Bench("tip-pool-x", suite="tip-pool", mlflow_url="sqlite:///m.db") as bench:
        bench.decide(models=models, prompts="v1", n_tips=2)
        exported = bench.export("lena.json", "lena")
        assert (exported.candidates, exported.anchors) == (12, 12)
        bench.decide(budget=30)
        with pytest.raises(NothingPending, match="the next batch would exceed the budget of 30 judgements"):
            bench.export("bob.json", "bob")


def test_an_experiment_that_was_collected_before_is_refused(models: str) -> None:
    with Bench("tip-pool-x", suite="tip-pool", mlflow_url="sqlite:///m.db") as bench:
        bench.collect(models=models, prompts="v1", n_scenarios=1)
    with pytest.raises(InvalidInput, match="'tip-pool-x' was not made for a decision; choose a new one"):
        decided(models, KnownJudge())


def test_as_a_user_types_it(models: str, tmp_path: Path) -> None:
    """With a file: each call applies the filled-in one, says where the decision stands, and writes the next."""
    call = ("decide", "--models", models, "--prompts", "v1", "--n-tips", "2", "--experiment", "tip-pool-y")
    file = tmp_path / "tip-pool-y-decide.json"
    done = tipbench(*call, "--mlflow-url", "sqlite:///y.db")
    assert done.status == 1, done.err
    assert done.out.startswith("Nothing is judged yet: 3 rows are in.")
    first = json.loads(file.read_text())["batch"]
    file.unlink()
    again = tipbench(*call, "--mlflow-url", "sqlite:///y.db")
    assert again.status == 1, again.err
    assert json.loads(file.read_text())["batch"] == first, "a lost file is written again"
    early = tipbench(*call, "--mlflow-url", "sqlite:///y.db")
    assert early.status == 2
    assert "is not filled in: 26 of 26 items have no scores yet" in early.err
    for _ in range(12):
        file.write_text(json.dumps(KnownJudge().score(json.loads(file.read_text()))))
        done = tipbench(*call, "--mlflow-url", "sqlite:///y.db")
        if done.status != 1:
            break
    assert done.status == 0, done.err
    assert done.out.startswith("Take scripted/good.yaml × v1: picking it is expected to lose ")
    assert not file.exists()
    compared = tipbench("compare", "--experiment", "tip-pool-y", "--mlflow-url", "sqlite:///y.db")
    assert compared.out.startswith("Take scripted/good.yaml × v1: picking it is expected to lose ")
    shown = tipbench(*call, "--mlflow-url", "sqlite:///y.db", "--format", "json")
    assert json.loads(shown.out)["winner"] == "scripted/good.yaml × v1"
