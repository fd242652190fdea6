"""The best and the worst candidates of each row."""

from tests.bench.compare.made_cells import cell, counted
from tipbench.bench.compare.examples import pick_examples
from tipbench.bench.compare.rows import key_of
from tipbench.bench.records import Slot, Verdict

ONE, TWO = counted(cell("s1"), 9), counted(cell("s2"), 9)
OTHER = counted(cell("s1", "other"), 9)


def said(run_id: str, candidate: int, composite: float, note: str = "") -> tuple[tuple[str, int], Verdict]:
    slot = Slot("s", run_id, candidate, "d", "sd", {})
    return (run_id, candidate), Verdict(slot, {"tone": 3}, {"overlong": False}, (), composite, note)


def text_of(run_id: str, candidate: int) -> str:
    return f"text {candidate} of {run_id}"


def test_each_row_shows_its_own_best_and_worst() -> None:
    verdicts = dict(
        [said(ONE.run_id, 0, 9), said(ONE.run_id, 1, 12), said(TWO.run_id, 0, 5), said(OTHER.run_id, 0, 17)]
    )
    found = pick_examples([ONE, TWO, OTHER], [verdicts], text_of, each=1)
    mine = found[key_of(ONE)]
    assert [(one.text, one.composite, one.scenario) for one in mine.best] == [(f"text 1 of {ONE.run_id}", 12, "s1")]
    assert [(one.composite, one.scenario) for one in mine.worst] == [(5, "s2")]
    assert [one.composite for one in found[key_of(OTHER)].best] == [17]
    assert found[key_of(OTHER)].worst == ()


def test_several_judges_are_averaged_and_all_notes_are_kept() -> None:
    found = pick_examples(
        [ONE], [dict([said(ONE.run_id, 0, 9, "good")]), dict([said(ONE.run_id, 0, 12, "bad")])], text_of
    )
    (example,) = found[key_of(ONE)].best
    assert (example.composite, example.notes, example.scores) == (10.5, ("good", "bad"), {"tone": 3.0, "overlong": 0.0})


def test_only_the_texts_that_are_shown_are_read() -> None:
    read = []

    def watched(run_id: str, candidate: int) -> str:
        read.append(candidate)
        return ""

    pick_examples([ONE], [dict(said(ONE.run_id, n, 5 + n) for n in range(9))], watched, each=2)
    assert sorted(read) == [0, 1, 7, 8]


def test_verdicts_on_runs_that_are_gone_are_left_out() -> None:
    assert pick_examples([ONE], [dict([said("gone", 0, 9)])], text_of) == {}
