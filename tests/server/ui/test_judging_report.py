from dataclasses import replace

from tests.server.ui.fake_desk import applied
from tipbench.server.ui.judging_report import judging_report
from tipbench.statistics.drift import Kappa


def test_a_batch_that_counts() -> None:
    report = judging_report(applied())
    assert report.state == "counts"
    assert report.headline == "The scores of 60 texts count."
    assert report.why == []
    assert "14 anchors, 2 of them in earlier batches" in report.basis
    relevance = report.criteria[0]
    assert (relevance.title, relevance.offset, relevance.kappa) == ("Relevance", "+0.00", "1.00")
    assert relevance.twice == "0.50 apart, 50 % the same"
    assert relevance.meaning == "No leaning can be told; you agree closely on which texts are better."


def test_a_batch_in_quarantine_says_why_and_what_to_do() -> None:
    report = judging_report(applied(1))
    assert report.state == "in quarantine"
    assert report.why[0] == "Relevance: scores are 1.00 higher than the anchors' (allowed: 0.44)."
    assert "start the next batch" in report.then
    assert report.criteria[0].meaning.startswith("You score 0.79 points milder than the anchors' scores; ")


def test_a_batch_that_was_accepted_says_by_whom() -> None:
    report = judging_report(applied(1, accepted="Grete: the anchors are stale"))
    assert report.state == "accepted"
    assert report.why[-1] == "Accepted by Grete: the anchors are stale"
    assert "Nothing is left to do" in report.then


def test_too_few_anchors_say_nothing_about_the_judge() -> None:
    report = judging_report(applied(anchors=7))
    assert report.state == "counts"
    assert report.criteria == []
    assert "not assessable: 7 anchors" in report.basis
    assert "12 are needed" in report.basis


def test_scores_that_are_all_the_same_have_no_kappa() -> None:
    batch = applied()
    same = replace(batch.drift.criteria["tone"], kappa=Kappa(None, -1, 1))
    found = judging_report(replace(batch, drift=replace(batch.drift, criteria={"tone": same}))).criteria[0]
    assert found.kappa == "undefined"
    assert "all scores are the same" in found.meaning


def test_what_else_came_of_it_is_told() -> None:
    assert judging_report(applied(overruled=1, replaced=3)).more == [
        "You saw a flag otherwise than code in 1 item.",
        "3 texts had other scores by you before, which stay in the history.",
    ]
