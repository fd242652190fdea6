"""Tips of the best rows, as candidates that the recommender takes."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.compare.html.boards import board, cell, counted, empty, failed, grid
from tests.integration.filling import filled
from tests.server.views.conftest import EXPERIMENT
from tipbench.bench.bench import Bench
from tipbench.bench.compare.leaderboard import Leaderboard
from tipbench.bench.context import Context
from tipbench.bench.judge.judges.interface import JudgeName
from tipbench.bench.judge.sample import BatchSize
from tipbench.bench.judge.settle import effective_verdicts
from tipbench.bench.suites.load import built_in_suites, load_suite
from tipbench.bench.tracking.batches import applied_batches, batch_runs
from tipbench.bench.tracking.runs import CELL, KIND, stored_candidates
from tipbench.core.errors import InvalidInput, NotFound
from tipbench.core.located_yaml import load_located
from tipbench.server.jobs.simulation_asked import built_in_world
from tipbench.server.views.boards import Boards
from tipbench.server.views.store_provider import StoreProvider
from tipbench.server.views.tips import (
    GENERAL,
    Tips,
    best_row_indices,
    good_tips,
    load_categories,
    tips_of,
    with_categories,
)


@pytest.fixture
def read(boards: Boards) -> Leaderboard:
    return boards.leaderboard(EXPERIMENT)


def tips(stores: StoreProvider, found: Leaderboard, category: str | None = None, rows: tuple[int, ...] = (0,)) -> Tips:
    store = stores.store()
    return tips_of(store, store.experiment(EXPERIMENT), found, rows, category)


def test_the_best_rows_come_first_and_may_be_narrowed_down() -> None:
    found = board(grid(["good", "poor"], ["v1", "v2"]))
    names = [(one.model, one.prompt) for one in found.rows]

    def picked(*given: object, **named: str) -> list[tuple[str, str]]:
        return [names[place] for place in best_row_indices(found, *given, **named)]  # type: ignore[arg-type]

    assert picked(1) == names[:1]
    assert picked(3) == names[:3]
    assert picked(9) == names
    assert picked(1, model="poor", prompt="v1") == [("poor", "v1")]
    assert {model for model, _ in picked(9, model="poor")} == {"poor"}
    with pytest.raises(InvalidInput, match="no row of 'e' is odd × v1; there are good × v2, "):
        picked(1, model="odd", prompt="v1")


def test_without_scores_there_is_no_best_row() -> None:
    unjudged = board([cell("a"), cell("b")])
    with pytest.raises(InvalidInput, match="nothing of 'e' that could be taken is scored yet"):
        best_row_indices(unjudged, 1)
    assert len(best_row_indices(unjudged, 1, model="b")) == 1
    assert len(best_row_indices(unjudged, 2)) == 2


def test_each_text_names_the_run_and_the_cell_that_it_came_from(stores: StoreProvider, read: Leaderboard) -> None:
    store = stores.store()
    written = {
        run.run_id: stored_candidates(store, run).texts
        for run in store.iter_runs(store.experiment(EXPERIMENT), {KIND: CELL})
    }
    found = tips(stores, read)
    cells = {one.run_id: one for one in read.grid.rows[0].cells}
    assert len(found.tips) == 16
    assert len({tip.candidate.id for tip in found.tips}) == 16
    for tip in found.tips:
        source = tip.candidate.source
        assert source
        assert source.cell == cells[source.run_id].key
        assert tip.text in written[source.run_id]
        assert tip.candidate.len_chars == len(tip.text)
    assert found == tips(stores, read)


def test_a_category_is_what_scenarios_belong_together_by_or_what_was_named(
    stores: StoreProvider, read: Leaderboard
) -> None:
    def categories(category: str | None, of: Leaderboard = read) -> set[str]:
        return {tip.candidate.category for tip in tips(stores, of, category).tips}

    personas = {"electrician", "translator", "ward-lead", "payroll-clerk"}
    assert categories(None) == personas
    assert categories("time_slot") == {"morning", "evening"}
    assert len(categories("scenario")) == 8
    with pytest.raises(InvalidInput, match="--category 'weather' is none of persona, time_slot, scenario"):
        categories("weather")
    each_for_itself = board([replace(one, cluster=None) for row in read.grid.rows for one in row.cells], EXPERIMENT)
    assert len(categories(None, each_for_itself)) == 8


def test_what_has_no_text_is_left_out_and_counted(stores: StoreProvider, read: Leaderboard) -> None:
    first, second, *others = read.grid.rows[0].cells
    found = board([failed(first), empty(second), *(counted(one, 5) for one in others)], EXPERIMENT)
    some = tips(stores, found)
    assert (some.failed, some.empty, len(some.tips)) == (1, 1, 12)
    assert not {first.run_id, second.run_id} & {
        tip.candidate.source.run_id for tip in some.tips if tip.candidate.source
    }


def test_a_run_that_is_gone_is_named(stores: StoreProvider, read: Leaderboard) -> None:
    store = stores.store()
    [run, *_] = store.runs(store.experiment(EXPERIMENT), {KIND: CELL})
    store.remove_run(run)
    with pytest.raises(NotFound, match=f"run {run.run_id} is gone from '{EXPERIMENT}'"):
        tips(stores, read, rows=(0, 1))


def test_poor_and_overlong_tips_are_left_out_and_counted(stores: StoreProvider, read: Leaderboard) -> None:
    rubric = load_suite("tip").rubric
    found = tips(stores, read)
    assert found.unjudged == 16
    assert good_tips(found, rubric).tips == found.tips, "what nobody has judged is taken"
    poor, fair, good, overlong = found.tips[:4]
    scored = replace(
        found,
        failed=1,
        tips=(
            replace(poor, composite=9.0),
            replace(fair, composite=9.5),
            replace(good, composite=17.0),
            replace(overlong, composite=17.0, text="x" * 161),
        ),
    )
    taken = good_tips(scored, rubric)
    assert [tip.candidate.id for tip in taken.tips] == [fair.candidate.id, good.candidate.id]
    assert [tip.candidate.judged for tip in taken.tips] == [0.5, 1.0], "from 2 to 17"
    reasons = "1 tip with a composite below 9.5, 1 tip longer than the rubric allows, 1 cell that failed"
    assert taken.left_out == reasons
    assert len(good_tips(scored, rubric, 2.0).tips) == 3
    assert good_tips(scored, rubric, 17.0).low == 2
    with pytest.raises(InvalidInput, match=r"is good enough \(1 tip with a composite below 9\.5\); lower"):
        good_tips(replace(scored, failed=0, tips=scored.tips[:1]), rubric)
    with pytest.raises(InvalidInput, match=r"--min-composite 18 is not on the composite's scale, which is 2 to 17"):
        good_tips(scored, rubric, 18.0)


def test_a_tip_has_its_own_composite_else_its_cells(stores: StoreProvider, boards: Boards) -> None:
    store = stores.store()
    with Bench(EXPERIMENT, context=Context(store=store)) as bench:
        file = filled(bench.new_batch(JudgeName("ana"), BatchSize(sample=1)).file)
        bench.apply(file)
        own = {
            item: verdict.composite
            for batch in applied_batches(store, batch_runs(store, bench.experiment), bench.rubric.digest)
            for item, verdict in effective_verdicts([batch])["ana"].items()
        }
    found = tips(stores, boards.leaderboard(EXPERIMENT))
    by_run: dict[str, list[float | None]] = {}
    for tip in found.tips:
        assert tip.candidate.source
        by_run.setdefault(tip.candidate.source.run_id, []).append(tip.composite)
    assert found.unjudged == 0
    for run_id, composites in by_run.items():
        assert composites == [next(value for (run, _), value in own.items() if run == run_id)] * 2


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("Reply to Petra's e-mail, then archive it.", "inbox"),
        ("Take a walk and drink some water.", "health"),
        ("Plan tomorrow before you leave.", "planning"),
        ("Put your phone away and focus on one thing: the draft.", "focus"),
        ("Take a break and relax.", "rest"),
        ("Zzz.", GENERAL),
        ("Unmailed", GENERAL),
    ],
)
def test_a_tips_words_tell_its_category(text: str, category: str) -> None:
    assert load_categories(built_in_suites()["tip"] / "categories.yaml").category(text) == category


def test_the_categories_are_those_of_the_world() -> None:
    words = load_located((built_in_suites()["tip"] / "categories.yaml").read_text()).data
    assert tuple(words) == built_in_world().categories


def test_tips_get_their_categories_from_a_file(stores: StoreProvider, read: Leaderboard, tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("short: [a, e, i, o, u]\n")
    found = with_categories(tips(stores, read), load_categories(own))
    assert {tip.candidate.category for tip in found.tips} <= {"short", GENERAL}
    for text in ("- a list", "name: word", "name: []", "name: [1]", "{", ""):
        own.write_text(text)
        with pytest.raises(InvalidInput, match=r"own\.yaml does not hold categories"):
            load_categories(own)
    with pytest.raises(InvalidInput, match="can't be read"):
        load_categories(tmp_path / "none.yaml")
