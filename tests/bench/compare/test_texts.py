"""What the models wrote, side by side: which texts are shown, in which order, and what is said of the others."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.bench.compare.made_cells import board, cell, counted, empty, failed, provisional
from tipbench.bench.compare.texts import ENTRIES_PER_PAGE, Item, Text, TextFilter, TextPage, Texts
from tipbench.bench.records import Slot, StoredCandidates, StoredCell, Verdict
from tipbench.core.errors import InvalidInput, StoredDataDamaged


class Store:
    """Notes what is read."""

    def __init__(self) -> None:
        self.reads: list[list[str]] = []

    def read(self, run_ids: Sequence[str]) -> dict[str, StoredCandidates]:
        self.reads.append(list(run_ids))
        return {
            run_id: StoredCandidates("about", True, tuple(f"text {number} of {run_id}" for number in range(5)))
            for run_id in run_ids
        }


def said(found: StoredCell, *composites: float, note: str = "") -> dict[Item, Verdict]:
    """Scores of the cell's first candidates."""
    return {
        (found.run_id, number): Verdict(
            Slot("s", found.run_id, number, "d", "sd", {}), {"tone": 3}, {"overlong": False}, (), composite, note
        )
        for number, composite in enumerate(composites)
    }


def texts(cells: Sequence[StoredCell], *verdicts: dict[Item, Verdict], store: Store | None = None) -> Texts:
    """All by one judge."""
    return Texts(
        board(*cells), [{item: one for given in verdicts for item, one in given.items()}], (store or Store()).read
    )


GOOD = [counted(cell("s1", "good"), 14), counted(cell("s2", "good"), 9)]
POOR = [counted(cell("s1", "poor"), 6), counted(cell("s2", "poor"), 8)]
SCORES = [said(GOOD[0], 15, 13), said(GOOD[1], 8, 10, 9), said(POOR[0], 6), said(POOR[1], 8, 8.5)]
ALL = [*GOOD, *POOR]


def shown(page: TextPage) -> list[tuple[str, list[tuple[str, float | None, float | None]]]]:
    """Scenarios, each with its models and their best and worst composites."""

    def composite(text: Text | None) -> float | None:
        return text.composite if text else None

    return [
        (one.scenario, [(entry.row.model, composite(entry.best), composite(entry.worst)) for entry in one.entries])
        for one in page.scenarios
    ]


def test_the_scenario_on_which_rows_differ_most_comes_first_with_the_best_and_worst_text_of_each() -> None:
    page = texts(ALL, *SCORES).page(TextFilter())
    assert shown(page) == [
        ("s1", [("good", 15, 13), ("poor", 6, None)]),
        ("s2", [("good", 10, 8), ("poor", 8.5, 8)]),
    ]
    assert [one.spread for one in page.scenarios] == [8, 1]
    good, poor = page.scenarios[0].entries
    assert good.best
    assert good.worst
    assert (good.best.text, good.worst.text) == (f"text 0 of {GOOD[0].run_id}", f"text 1 of {GOOD[0].run_id}")
    assert (good.composite, good.remarks) == (14, ("3 texts not scored yet",))
    assert poor.remarks == ("4 texts not scored yet",)
    assert page.scenarios[0].about == "about"


def test_one_row_shows_the_scenario_with_its_worst_text_first() -> None:
    page = texts(ALL, *SCORES).page(TextFilter(model="good"))
    assert shown(page) == [("s2", [("good", 10, 8)]), ("s1", [("good", 15, 13)])]


def test_the_leaders_best_and_worst_are_over_all_scenarios_and_no_text_is_both() -> None:
    page = texts(ALL, *SCORES).overview()
    assert [one.composite for one in page.best_of_leader] == [15, 13]
    assert [(one.composite, one.scenario) for one in page.worst_of_leader] == [(8, "s2"), (9, "s2")]
    alone = texts(GOOD[:1], said(GOOD[0], 12)).overview()
    assert ([one.composite for one in alone.best_of_leader], alone.worst_of_leader) == ([12], ())


def test_several_judges_are_averaged_and_all_notes_are_shown() -> None:
    one, two = said(GOOD[0], 9, note="good"), said(GOOD[0], 12, note="bad")
    found = Texts(board(*ALL), [one, two], Store().read).page(TextFilter(scenario="s1", model="good"))
    best = found.scenarios[0].entries[0].best
    assert best
    assert (best.composite, best.notes, best.scores) == (10.5, ("good", "bad"), {"tone": 3.0, "overlong": 0.0})


def test_what_is_not_scored_failed_or_empty_is_said() -> None:
    cells = [
        *ALL,
        cell("s1", "late"),
        replace(failed(cell("s1", "gone")), failure="timed\nout"),
        empty(cell("s1", "mute")),
    ]
    found = texts(cells, *SCORES).page(TextFilter(scenario="s1")).scenarios[0].entries
    entries = {one.row.model: one for one in found}
    late = entries["late"]
    assert late.best
    assert (late.best.composite, late.best.text) == (None, f"text 0 of {cells[4].run_id}")
    assert (late.composite, late.worst, late.remarks) == (None, None, ("5 texts not scored yet",))
    assert (entries["gone"].best, entries["gone"].remarks) == (None, ("failed: timed out",))
    assert (entries["mute"].best, entries["mute"].composite, entries["mute"].remarks) == (None, 2, ("no usable text",))


def test_provisional_scores_are_shown_until_others_count() -> None:
    by_rule = [provisional(cell("s1", "a"), 9), provisional(cell("s1", "b"), 6)]
    found = texts(by_rule, said(by_rule[0], 9), said(by_rule[1], 6))
    assert shown(found.page(TextFilter())) == [("s1", [("a", 9, None), ("b", 6, None)])]


def test_filtered_by_score_only_texts_within_are_shown_and_rows_without_any_are_left_out() -> None:
    found = texts([*ALL, cell("s1", "late")], *SCORES)
    assert shown(found.page(TextFilter(score_from=8.5, score_to=13))) == [
        ("s1", [("good", 13, None)]),
        ("s2", [("good", 10, 9), ("poor", 8.5, None)]),
    ]
    assert found.page(TextFilter(score_from=16)).total == 0


def test_two_rows_are_compared_where_they_differ_most_first_whoever_is_ahead() -> None:
    better = counted(cell("s3", "poor"), 17)
    found = texts([*ALL, counted(cell("s3", "good"), 5), better, counted(cell("s4", "good"), 9)], *SCORES)
    page = found.page(TextFilter(rows=("poor × v1", "good × v1")))
    assert [(one.scenario, one.differences.get("composite")) for one in page.scenarios] == [
        ("s3", 12), ("s1", -8), ("s2", -1), ("s4", None),
    ]  # fmt: skip
    assert page.scenarios[0].differences["tone"] == 4
    assert [one.row.model for one in page.scenarios[0].entries] == ["poor", "good"]
    assert page.scenarios[-1].entries[0].remarks == ("not asked",)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (TextFilter(scenario="s9"), "this experiment has no scenario 's9'; choose one from the list"),
        (TextFilter(model="x\x1b"), r"has no model 'x\x1b'"),
        (TextFilter(prompt="v9"), "has no prompt 'v9'"),
        (TextFilter(rows=("good × v1", "bad × v1")), "has no variant 'bad × v1'"),
        (TextFilter(rows=("good × v1", "good × v1")), "can't be compared with itself"),
        (TextFilter(rows=("good × v1", "poor × v1"), model="good"), "leave out model, prompt and score"),
        (TextFilter(score_from=9, score_to=8.5), "no score can be from 9 to 8.5; swap the two"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(wanted: TextFilter, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        texts(ALL, *SCORES).page(wanted)
    assert said in str(refused.value)


def test_pages_hold_whole_scenarios_each_row_once_and_read_their_texts_at_once() -> None:
    cells = [counted(cell(f"s{s}", f"m{m:02}"), 5 + (s + m) % 12) for s in range(5) for m in range(10)]
    store = Store()
    found = texts(cells, *(said(one, 9, 8, 7) for one in cells), store=store)
    seen: list[tuple[str, str]] = []
    offset: int | None = 0
    while offset is not None:
        page = found.page(TextFilter(offset=offset))
        assert len(page.scenarios) == (2 if page.next_offset else 1)
        seen += [(one.scenario, entry.row.model) for one in page.scenarios for entry in one.entries]
        offset = page.next_offset
    assert len(seen) == len(set(seen)) == page.total == 50
    assert [len(run_ids) for run_ids in store.reads] == [20, 20, 10]


def test_a_scenario_with_more_rows_than_a_page_goes_on_on_the_next() -> None:
    cells = [counted(cell("s", f"m{m:02}"), 9) for m in range(ENTRIES_PER_PAGE + 1)]
    found = texts(cells)
    first = found.page(TextFilter())
    assert (first.entries, first.next_offset) == (ENTRIES_PER_PAGE, ENTRIES_PER_PAGE)
    assert found.page(TextFilter(offset=ENTRIES_PER_PAGE)).entries == 1


def test_a_text_that_is_gone_is_said() -> None:
    gone = Texts(board(*ALL), [], lambda _: {})
    with pytest.raises(StoredDataDamaged, match=r"candidate 0 of run .* is gone from MLflow"):
        gone.page(TextFilter())


def test_verdicts_on_runs_that_are_gone_change_nothing() -> None:
    assert texts(ALL, *SCORES, said(cell("gone"), 17)).page(TextFilter()).total == 4


def test_without_cells_there_are_no_texts() -> None:
    page = texts([]).overview()
    assert (page.entries, page.scenarios, page.next_offset) == (0, (), None)
