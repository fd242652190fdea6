"""Anchors proposed from agreement: of judges who count, spread over the scale, and never a check of those judges."""

import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.integration.command import tipbench
from tipbench.bench.bench import Bench
from tipbench.bench.judge.apply import ApplyOptions
from tipbench.bench.judge.drift import AnchorReferences
from tipbench.bench.judge.judges.interface import JudgeName
from tipbench.bench.judge.proposals import propose_anchors
from tipbench.bench.judge.sample import BatchSize
from tipbench.bench.records import Slot, Verdict
from tipbench.bench.suites.anchors import NAME, accept_anchors
from tipbench.bench.suites.load import load_suite
from tipbench.bench.suites.suite import Suite
from tipbench.core.errors import InvalidInput
from tipbench.core.identity import text_digest
from tipbench.core.settings import Settings

COMMITS = Path(__file__).parents[2] / "integration" / "suites" / "commits"
Scores = Callable[[str, int], int]  # of a text on the criterion of this number


class By:
    """A judge by a rule."""

    def __init__(self, name: str, scores: Scores, provisional: bool = False) -> None:
        self.identity = JudgeName(name, provisional)
        self.scores = scores

    def score(self, file: dict[str, Any]) -> dict[str, Any]:
        for item in file["items"]:
            names = list(item["scores"])
            item["scores"] = {name: self.scores(item["candidate"], number) for number, name in enumerate(names)}
        return file


def drawn(text: str, criterion: int) -> int:
    return random.Random(f"{text}{criterion}").randint(1, 3)


def shifted(text: str, criterion: int) -> int:
    """A point off on the second criterion for half of the texts."""
    score = drawn(text, criterion)
    return min(3, score + 1) if criterion == 1 and len(text) % 2 else score


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return load_suite(str(shutil.copytree(COMMITS, tmp_path / "commits")))


@pytest.fixture
def bench(work: Bench, suite: Suite) -> Bench:
    found = Bench("x", context=work.context, suite=str(suite.folder))
    found.collect(models="scripted/a,scripted/b")
    return found


def judged(bench: Bench, *judges: By, how: ApplyOptions | None = None) -> None:
    for judge in judges:
        bench.judge(judge, size=BatchSize(sample=5), how=how)


def test_candidates_that_two_judges_scored_alike_are_proposed_once_and_spread(bench: Bench, suite: Suite) -> None:
    judged(bench, By("lena", drawn), By("tom", drawn))
    found = bench.propose_anchors()
    assert (found.judges, found.shared, found.agreed) == (("lena", "tom"), 120, 120)
    assert len(found.entries) == 40
    assert len({entry.candidate for entry in found.usable}) == len(found.usable) < 120, "each text once"
    assert {entry.scenario for entry in found.entries} == {scenario.id for scenario in suite.scenarios}
    for number, name in enumerate(suite.rubric.criteria):
        levels = Counter(entry.scores[name] for entry in found.entries)
        assert min(levels[level] for level in (1, 2, 3)) >= 10
        assert all(entry.scores[name] == drawn(entry.candidate, number) for entry in found.entries)
    assert all(entry.by == ["lena", "tom"] and "lena and tom" in entry.reason for entry in found.entries)


def test_whoever_does_not_count_agrees_with_nobody(bench: Bench) -> None:
    judged(bench, By("lena", drawn), By("rules", drawn, provisional=True))
    found = bench.propose_anchors()
    assert found.entries == ()
    assert "two judges whose scores count in 'x', and only lena's do" in found.says


def test_a_third_judge_who_disagrees_is_heard_and_a_tolerance_is_stated(bench: Bench) -> None:
    judged(bench, By("lena", drawn), By("tom", drawn))
    everything = bench.propose_anchors().agreed
    judged(bench, By("uwe", shifted))
    exact, near = bench.propose_anchors(), bench.propose_anchors(tolerance=1)
    assert exact.agreed < everything == near.agreed
    apart = [entry for entry in near.usable if drawn(entry.candidate, 1) != shifted(entry.candidate, 1)]
    assert apart
    for entry in apart:
        assert entry.scores["reason"] == drawn(entry.candidate, 1), "what most of them gave"
        assert f"uwe {shifted(entry.candidate, 1)}" in entry.reason
    with pytest.raises(InvalidInput, match="0 points or more"):
        bench.propose_anchors(tolerance=-1)


def test_anchors_that_all_say_the_same_are_left_out(bench: Bench) -> None:
    judged(bench, By("lena", lambda *_: 3), By("tom", lambda *_: 3))
    found = bench.propose_anchors()
    assert len(found.entries) == 3
    assert "too many anchors would have the same scores" in found.says
    assert "It takes 12 to check a judge" in found.says


def test_agreement_by_chance_is_told(bench: Bench) -> None:
    judged(bench, By("lena", drawn), By("tom", lambda text, number: drawn(text + "!", number)))
    assert "On truth, reason, form they agree hardly more than by chance" in bench.propose_anchors().says


def test_only_texts_that_the_suite_can_use_are_proposed(bench: Bench, suite: Suite) -> None:
    judged(bench, By("lena", drawn), By("tom", drawn))
    found = bench.propose_anchors()
    first = found.entries[0]
    accept_anchors(suite, [first], Settings(), print)
    example = replace(suite, rubric=suite.rubric, scenarios=suite.scenarios[1:])
    again = propose_anchors(bench.store, bench.experiment, load_suite(str(suite.folder)))
    assert first.candidate not in {entry.candidate for entry in again.usable}
    gone = propose_anchors(bench.store, bench.experiment, example)
    assert suite.scenarios[0].id not in {entry.scenario for entry in gone.usable}


def test_an_experiment_of_another_suite_or_rubric_gives_none(bench: Bench, suite: Suite) -> None:
    judged(bench, By("lena", drawn))
    with pytest.raises(InvalidInput, match="is not of suite 'tip'"):
        propose_anchors(bench.store, bench.experiment, load_suite("tip"))
    rubric = suite.folder / "rubric.md"
    rubric.write_text(rubric.read_text().replace("It says what", "It says exactly what"))
    with pytest.raises(InvalidInput, match="judged by another rubric than suite 'commits' has now"):
        propose_anchors(bench.store, bench.experiment, load_suite(str(suite.folder)))


def test_an_anchor_never_checks_the_judges_who_made_it(bench: Bench, suite: Suite) -> None:
    judged(bench, By("lena", drawn), By("tom", drawn))
    accept_anchors(suite, bench.propose_anchors().entries, Settings(), print)
    for judge, anchors in (("lena", 0), ("tom", 0), ("uwe", 16)):
        work = Bench("x", context=bench.context, suite=str(suite.folder))
        work.collect(models="scripted/c")
        assert work.new_batch(JudgeName(judge), BatchSize(sample=5)).anchors == anchors
    work = Bench("x", context=bench.context, suite=str(suite.folder))
    assert work.judge(By("wrong", lambda text, number: 4 - drawn(text, number))).in_quarantine
    assert not work.judge(By("uwe", drawn)).in_quarantine
    with pytest.raises(InvalidInput, match="0 anchors that 'lena' did not make"):
        work.calibrate(By("lena", drawn))
    assert work.calibrate(By("uwe", drawn)).would_count


def test_an_anchor_in_a_batch_of_its_maker_is_not_counted_for_drift(suite: Suite) -> None:
    gold = [
        replace(anchor, by=("lena",) if number < 5 else (), private=number % 2 == 0)
        for number, anchor in enumerate(load_suite("tip").anchors[:12])
    ]
    rubric = load_suite("tip").rubric
    verdicts = [
        Verdict(
            Slot("s", "", 0, text_digest(one.candidate), "", {}, "anchor", one.id, {} if one.private else one.scores),
            one.scores, {}, (), 1.0, "",
        )
        for one in gold
    ]  # fmt: skip
    assert len(AnchorReferences(gold, rubric, "uwe").pairs(verdicts)) == 12
    assert len(AnchorReferences(gold, rubric, "lena").pairs(verdicts)) == 7
    assert AnchorReferences(gold[5:], rubric, "lena").count_unknown(verdicts) == 3, "private ones that are not here"
    assert AnchorReferences(gold, rubric, "lena").count_unknown(verdicts) == 0


def test_the_command_writes_a_file_to_edit_and_accepts_it(bench: Bench, suite: Suite, tmp_path: Path) -> None:
    judged(bench, By("lena", drawn))
    common = ("suite", "anchors", "--experiment", "x", "--mlflow-url", bench.store.address)
    named = (*common, "--suite", str(suite.folder))
    alone = tipbench(*named)
    assert (alone.status, alone.out) == (1, "")
    judged(bench, By("tom", drawn))
    printed = tipbench(*named)
    file = tmp_path / "proposed.yaml"
    written = tipbench(*named, "--out", str(file))
    assert (printed.status, written.status) == (0, 0), written.err
    assert file.read_text().partition("\n- ")[2] == printed.out.partition("\n- ")[2]
    accept = f"suite anchors --accept {file} --suite {suite.folder}"
    assert f"then: tipbench {accept}" in written.out
    file.write_text(file.read_text().replace("truth: 1", "truth: 7", 1))
    refused = tipbench(*accept.split())
    assert refused.status == 2
    assert "truth: 7 is outside 1–3" in refused.err
    assert not (suite.folder / NAME).exists()
    file.write_text(file.read_text().replace("truth: 7", "truth: 2", 1))
    assert "40 anchors added" in tipbench(*accept.split()).out
    assert "0 anchors added" in tipbench(*accept.split()).out
    assert len(load_suite(str(suite.folder)).anchors) == 40
    assert tipbench("suite", "anchors").status == 2
    assert tipbench(*common, "--accept", "a", "--out", "b").status == 2
