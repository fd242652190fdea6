from dataclasses import replace

import pytest

from tests.server.ui.fake_desk import applied
from tipbench.server.views.judging_report import judging_report
from tipbench.statistics.drift import Kappa, Offset


def test_a_batch_that_counts() -> None:
    report = judging_report(applied())
    assert report.state == "counts"
    assert (report.headline, report.outcome) == ("You and the rubric agree.", "The scores of 60 texts count.")
    assert (report.then, report.differences, report.why) == ("", [], [])
    assert "14 reference texts, 2 of them in earlier batches" in report.basis
    relevance = report.criteria[0]
    assert (relevance.title, relevance.offset, relevance.kappa) == ("Relevance", "+0.00", "1.00")
    assert relevance.twice == "0.50 apart, 50 % the same"
    assert relevance.meaning == "No clear offset; you agree closely on which texts are better."


def test_a_batch_on_hold_says_where_the_judge_differs_and_what_to_do() -> None:
    report = judging_report(applied(1, candidates=6))
    assert report.state == "in quarantine"
    assert report.headline == "You and the rubric differ on relevance and tone."
    assert report.outcome == (
        "Nothing is lost: the scores of 6 texts are stored. They are on hold and don’t count for now."
    )
    assert report.then.startswith("Read the rubric’s words again, then judge the next batch")
    relevance = report.differences[0]
    assert relevance.text == "You score relevance about 0.8 points higher than the rubric’s reference texts."
    assert report.why[0] == "Relevance: scores are 1.00 higher than the anchors' (allowed: 0.44)."
    assert report.criteria[0].meaning.startswith("You score 0.79 points higher than the reference texts; ")


def test_an_offset_that_the_rubric_allows_is_mentioned_and_counts() -> None:
    batch = applied()
    off = replace(batch.drift.criteria["tone"], offset=Offset(-0.3, -0.5, -0.1, 14))
    report = judging_report(replace(batch, drift=replace(batch.drift, criteria={"tone": off})))
    assert report.headline == "You score tone about 0.3 points lower than the rubric’s reference texts."
    assert report.outcome == "That is within what the rubric allows: the scores of 60 texts count."
    assert report.then == "Read the rubric’s words below before you go on."


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        ("κ with the anchors is 0.40", "You and the rubric often disagree on which texts are better in tone."),
        ("the same item got scores 1.50 apart", "You scored the same text twice, and your scores for tone were 0.5 "),
        ("scores are 0.50 higher", "You score tone about 0.0 points lower than"),
    ],
)
def test_every_reason_for_a_hold_has_its_sentence(problem: str, text: str) -> None:
    batch = applied(quarantine=f"tone: {problem}")
    found = replace(batch.drift.criteria["tone"], problems=(problem,))
    report = judging_report(replace(batch, drift=replace(batch.drift, criteria={"tone": found})))
    assert report.headline.startswith(text)


def test_a_batch_that_was_accepted_says_by_whom() -> None:
    report = judging_report(applied(1, accepted="Grete: the anchors are stale"))
    assert report.state == "accepted"
    assert report.why[-1] == "Accepted by Grete: the anchors are stale"
    assert report.outcome == "The scores of 60 texts count: the batch was accepted."


def test_too_few_anchors_say_nothing_about_the_judge() -> None:
    report = judging_report(applied(anchors=7))
    assert report.state == "counts"
    assert report.criteria == []
    assert report.headline == "Thank you, your scores are in."
    assert "you scored 7 reference texts, and 12 are needed" in report.basis


def test_scores_that_are_all_the_same_have_no_kappa() -> None:
    batch = applied()
    same = replace(batch.drift.criteria["tone"], kappa=Kappa(None, -1, 1))
    found = judging_report(replace(batch, drift=replace(batch.drift, criteria={"tone": same}))).criteria[0]
    assert found.kappa == "undefined"
    assert "all scores are the same" in found.meaning


def test_what_else_came_of_it_is_told() -> None:
    assert judging_report(applied(overruled=1, replaced=3)).more == [
        "You overruled a flag that code had checked in 1 item.",
        "3 texts had other scores by you before, which stay in the history.",
    ]
