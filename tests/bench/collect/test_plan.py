"""The plan: what is stored is not generated again, and the time is an honest guess."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tipbench.bench.collect.grid import Grid
from tipbench.bench.collect.plan import make_plan
from tipbench.bench.options import make_options
from tipbench.bench.records import Cell, ModelInfo, StoredCell
from tipbench.bench.suites.load import load_suite

SMALL = ModelInfo("scripted/small", "scripted", parameters=500_000_000)
LARGE = ModelInfo("scripted/large", "scripted", parameters=3_000_000_000)
MODELS = [SMALL, LARGE]
CELLS = list(Grid(make_options({"prompts": "v1"}), load_suite("tip"), MODELS))


def stored(cell: Cell, failure: str | None = None, metrics: Mapping[str, float] | None = None) -> StoredCell:
    return StoredCell(
        run_id=f"run-{cell.key}",
        key=cell.key,
        model=cell.model.name,
        prompt=cell.prompt,
        prompt_digest=cell.prompt_digest,
        scenario=cell.scenario.id,
        factors=cell.scenario.factors,
        started_ms=0,
        failure=failure,
        candidates=5,
        pending=True,
        metrics=metrics or {},
        judged_rubric=None,
        judged_by=None,
        judges=(),
        repeat=0,
        settings={"max_tokens": str(cell.request.max_tokens)},
    )


def test_nothing_stored_means_everything_is_to_do() -> None:
    plan = make_plan(MODELS, CELLS, [])
    assert list(plan.to_do) == CELLS
    assert (plan.cells, plan.stored, plan.measured) == (16, 0, False)
    assert plan.seconds > 0


def test_what_is_stored_is_left_out_and_the_order_of_the_rest_stays() -> None:
    plan = make_plan(MODELS, CELLS, [stored(cell) for cell in CELLS[::3]])
    assert list(plan.to_do) == [cell for index, cell in enumerate(CELLS) if index % 3]
    assert plan.cells == 16
    assert plan.stored == 6


def test_everything_stored_takes_no_time() -> None:
    plan = make_plan(MODELS, CELLS, [stored(cell) for cell in CELLS])
    assert (list(plan.to_do), plan.seconds, plan.stored) == ([], 0.0, 16)


def test_cells_of_other_grids_do_not_count() -> None:
    strangers = Grid(make_options({"prompts": "v1", "seed": 9}), load_suite("tip"), MODELS)
    plan = make_plan(MODELS, CELLS, [stored(cell) for cell in strangers])
    assert (len(plan.to_do), plan.stored) == (16, 0)


def test_the_time_comes_from_earlier_cells_of_the_model() -> None:
    timed = [stored(cell, metrics={"gen/wall_s": 3.0}) for cell in CELLS[:1]]
    timed += [stored(cell, metrics={"gen/wall_s": 5.0}) for cell in CELLS[8:9]]
    plan = make_plan(MODELS, CELLS, timed)
    assert plan.measured
    assert plan.seconds == pytest.approx(7 * 3.0 + 7 * 5.0)


def test_cells_with_shorter_answers_say_nothing_about_the_time() -> None:
    short = replace(stored(CELLS[0], metrics={"gen/wall_s": 3.0}), settings={"max_tokens": "8"})
    assert not make_plan([SMALL], CELLS[:8], [short]).measured


def test_a_time_that_is_partly_a_guess_says_so() -> None:
    plan = make_plan(MODELS, CELLS, [stored(CELLS[0], metrics={"gen/wall_s": 2.0})])
    assert not plan.measured


def test_a_larger_model_is_thought_to_take_longer() -> None:
    small = make_plan([SMALL], CELLS[:8], []).seconds
    large = make_plan([LARGE], CELLS[8:], []).seconds
    assert small < large


def test_a_cell_that_failed_before_is_stored_and_said_to_have_failed() -> None:
    plan = make_plan(MODELS, CELLS, [stored(CELLS[0], failure="timed out"), stored(CELLS[1])])
    assert (plan.stored, plan.failed_before, len(plan.to_do)) == (2, 1, 14)
