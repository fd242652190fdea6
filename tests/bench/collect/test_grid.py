"""The grid: its order, and the identity of a cell, which is what shapes the answer and nothing else."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

import pytest

from tipbench.bench.collect import grid
from tipbench.bench.collect.grid import Grid
from tipbench.bench.options import make_options
from tipbench.bench.records import Cell, ModelInfo
from tipbench.bench.suites.load import load_suite
from tipbench.core.errors import InvalidInput

SUITE = load_suite("tip")
MODEL = ModelInfo("scripted/a", "scripted", digest="sha256:aa")
OTHER = ModelInfo("scripted/b", "scripted", digest="sha256:bb")


def cells(model: ModelInfo = MODEL, **given: Any) -> list[Cell]:
    return list(Grid(make_options({"prompts": "v1,v3-few-shot", **given}), SUITE, [model]))


def keys(model: ModelInfo = MODEL, **given: Any) -> list[str]:
    return [cell.key for cell in cells(model, **given)]


def test_every_model_prompt_scenario_and_repeat_is_there_once() -> None:
    made = Grid(make_options({"repeats": 2}), SUITE, [MODEL, OTHER])
    assert len(made) == 2 * 3 * 8 * 2
    assert len({cell.key for cell in made}) == len(made)
    assert len({cell.label for cell in made}) == len(made)


def test_cells_come_model_by_model_so_that_each_is_loaded_once() -> None:
    made = list(Grid(make_options({"repeats": 2}), SUITE, [OTHER, MODEL]))
    assert [name for name, _ in groupby(cell.model.name for cell in made)] == ["scripted/b", "scripted/a"]
    assert [prompt for prompt, _ in groupby(cell.prompt for cell in made[:48])] == ["v1", "v2-mentor", "v3-few-shot"]


def test_the_same_options_give_the_same_cells() -> None:
    assert cells(seed=3) == cells(seed=3)


@pytest.mark.parametrize(
    "given",
    [
        {"experiment": "another"},
        {"ollama_url": "http://elsewhere:1"},
        {"mlflow_url": "http://elsewhere:2"},
        {"max_model_b": 1.0},
        {"judge": "lexical"},
        {"temperature": 0.7},
        {"max_tokens": 512},
    ],
)
def test_a_key_does_not_depend_on_what_does_not_shape_the_answer(given: dict[str, Any]) -> None:
    assert keys(**given) == keys()


def test_fewer_scenarios_or_prompts_and_more_repeats_keep_the_keys_of_the_rest() -> None:
    assert set(keys(n_scenarios=3)) < set(keys())
    assert set(keys(prompts="v1")) < set(keys())
    assert set(keys()) < set(keys(repeats=2))


@pytest.mark.parametrize(
    "given",
    [
        {"seed": 1},
        {"temperature": 0.8},
        {"n_tips": 4},
        {"diversity": True},
        {"max_tokens": 511},
        {"prompts": "v2-mentor"},
    ],
)
def test_a_key_depends_on_everything_that_shapes_the_answer(given: dict[str, Any]) -> None:
    assert not set(keys(**given)) & set(keys())


def test_diversity_makes_another_cell_even_where_the_prompt_stays_the_same() -> None:
    plain, diverse = cells(n_tips=1), cells(n_tips=1, diversity=True)
    assert plain[0].request == diverse[0].request
    assert plain[0].key != diverse[0].key


def test_a_model_is_known_by_its_digest_and_by_its_name_only_where_there_is_none() -> None:
    assert keys(replace(MODEL, name="scripted/renamed")) == keys()
    assert not set(keys(replace(MODEL, digest="sha256:cc"))) & set(keys())
    assert not set(keys(replace(MODEL, engine="ollama"))) & set(keys())
    nameless = replace(MODEL, digest=None)
    assert not set(keys(replace(nameless, name="scripted/renamed"))) & set(keys(nameless))


def test_a_whole_temperature_is_the_same_cell_however_it_is_written() -> None:
    assert keys(temperature=1) == keys(temperature=1.0)


def test_models_and_prompts_share_the_seed_of_a_scenario_and_repeats_do_not() -> None:
    made = Grid(make_options({"repeats": 2}), SUITE, [MODEL, OTHER])
    seeds = {(cell.scenario.id, cell.repeat): cell.request.seed for cell in made}
    assert all(seeds[cell.scenario.id, cell.repeat] == cell.request.seed for cell in made)
    assert len(set(seeds.values())) == 16


def test_another_seed_asks_with_other_seeds() -> None:
    assert not {cell.request.seed for cell in cells(seed=1)} & {cell.request.seed for cell in cells(seed=2)}


def test_the_suite_says_how_long_an_answer_may_be_unless_the_options_do() -> None:
    assert {cell.request.max_tokens for cell in cells()} == {SUITE.contract.max_tokens}
    assert {cell.request.max_tokens for cell in cells(max_tokens=7)} == {7}


@pytest.mark.parametrize("given", [{"prompts": "v1,v9"}, {"n_scenarios": 9}])
def test_what_the_suite_does_not_have_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        cells(**given)


class _Counted:
    """A template that counts how often it is rendered."""

    source = "x"

    def __init__(self) -> None:
        self.rendered = 0

    def render_each(self, all_values: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        for values in all_values:
            self.rendered += 1
            yield f"{values['scenario']} {'x' * 1_000}"


@pytest.mark.parametrize(("kept", "rendered"), [(4_000_000, 8), (0, 8 * 5), (3_500, 3 * 1 + 5 * 5)])
def test_a_prompt_is_rendered_once_for_all_models_and_repeats_as_far_as_memory_is_given_to_that(
    kept: int, rendered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grid, "_MAX_RENDERED", kept)
    template = _Counted()
    scenarios = tuple(replace(scenario, text="short") for scenario in SUITE.scenarios)
    suite = replace(
        SUITE, scenarios=scenarios, prompts={"v1": replace(SUITE.prompts["v1"], user=template, system=None)}
    )
    made = Grid(make_options({"prompts": "v1", "repeats": 3}), suite, [MODEL, OTHER])
    assert len({cell.key for cell in made}) == len(list(made)) == 2 * 8 * 3
    assert template.rendered == rendered  # where it is not kept: for the check, and for each model in each pass
    assert sum(len(message.content) for found in made._rendered.values() for message in found) <= kept
