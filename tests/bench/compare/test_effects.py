"""What models do, what prompts do, and whether a prompt is better on all models."""

import random
from itertools import product

import pytest

from tests.bench.compare.made_cells import board, cell, counted, persona_cells
from tipbench.bench.compare.effects import GridEffects, prompt_sentence
from tipbench.bench.compare.leaderboard import Leaderboard
from tipbench.bench.compare.messages import effect_sentences
from tipbench.bench.records import StoredCell


def grid(model_lift: dict[str, float], prompt_lift: dict[str, float], twist: float = 0, n: int = 8) -> list[StoredCell]:
    """`twist` lifts the first prompt on the first model and lowers it on the others."""
    drawn = random.Random(2)
    cells = []
    for (m, model), (p, prompt) in product(enumerate(model_lift), enumerate(prompt_lift)):
        shift = model_lift[model] + prompt_lift[prompt] + (twist if (m, p) == (0, 0) else -twist if p == 0 else 0)
        cells += persona_cells(model, prompt, [10 + shift + drawn.choice((-0.5, 0, 0.5)) for _ in range(n)])
    return cells


def effects(found: Leaderboard) -> GridEffects:
    assert isinstance(found.effects, GridEffects)
    return found.effects


def test_lifts_of_models_and_prompts_are_told_apart() -> None:
    found = effects(board(*grid({"a": 2, "b": 0, "c": -2}, {"v1": -1, "v2": 0, "v3": 1})))
    assert {one.name: one.size for one in found.models.levels} == pytest.approx({"a": 2, "b": 0, "c": -2}, abs=0.25)
    assert {one.name: one.size for one in found.prompts.levels} == pytest.approx({"v1": -1, "v2": 0, "v3": 1}, abs=0.25)
    assert found.models.p is not None
    assert found.prompts.p is not None
    assert found.interaction_p is not None
    assert max(found.models.p, found.prompts.p) <= 0.05 < found.interaction_p
    assert all(
        one.low is not None and one.high is not None and one.low < one.size < one.high for one in found.models.levels
    )
    assert found.models.unit == "persona"


def test_the_best_prompt_on_all_models_is_called_that() -> None:
    found = effects(board(*grid({"a": 1, "b": 0, "c": -1}, {"v1": -2, "v2": 0, "v3": 2})))
    assert set(found.best_prompts.values()) == {("v3",)}
    assert prompt_sentence(found) == "v3 has the highest mean on all 3 models."


def test_a_prompt_that_helps_one_model_only_is_an_interaction() -> None:
    found = effects(board(*grid({"a": 0, "b": 0, "c": 0}, {"v1": 0, "v2": 0.5, "v3": 0}, twist=3)))
    assert found.interaction_p is not None
    assert found.interaction_p <= 0.05
    assert prompt_sentence(found) == "v2 has the highest mean on 2 of 3 models, not on a."


def test_equal_rows_may_be_chance() -> None:
    says = effect_sentences(board(*grid({"a": 0, "b": 0, "c": 0}, {"v1": 0, "v2": 0, "v3": 0})))
    assert len([line for line in says if "may be chance" in line]) == 3


def test_one_model_has_no_interaction() -> None:
    found = effects(board(*grid({"a": 0}, {"v1": 0, "v2": 2, "v3": 0})))
    assert found.interaction_p is None
    assert found.models.p is None
    assert prompt_sentence(found) == "v2 has the highest mean on the only model."


def test_prompts_that_not_every_model_has_are_left_out_and_named() -> None:
    cells = grid({"a": 0, "b": 1}, {"v1": 0, "v2": 1}) + persona_cells("a", "v9", [17] * 8)
    found = effects(board(*cells))
    assert found.left_out == ("v9",)
    assert {one.name for one in found.prompts.levels} == {"v1", "v2"}


def test_without_a_full_grid_there_are_no_effects_and_the_reason_is_given() -> None:
    apart = persona_cells("a", "v1", [9] * 8) + persona_cells("b", "v2", [9] * 8)
    assert board(*apart).effects == "no prompt has scores on every model"
    assert board(*persona_cells("a", "v1", [9] * 8)).effects == "fewer than two rows have scores"
    twice = persona_cells("a", "v1", [9] * 8) + persona_cells("a", "v1", [9] * 8, digest="d2")
    assert board(*twice).effects == "rows of the same model and prompt were collected with different settings"
    other = [counted(cell("s1", "a"), 9), counted(cell("s2", "b"), 9)]
    assert board(*other).effects == "no scenario was scored in every row"
    assert board().effects == "fewer than two rows have scores"


def test_few_scenarios_give_sizes_without_claims() -> None:
    found = effects(board(*grid({"a": 2, "b": -2}, {"v1": 0, "v2": 1}, n=2)))
    assert {one.name: round(one.size) for one in found.models.levels} == {"a": 2, "b": -2}
    assert found.models.p is None
    assert found.models.levels[0].low is None
    assert "can't be told" in effect_sentences(board(*grid({"a": 2, "b": -2}, {"v1": 0, "v2": 1}, n=2)))[0]


def test_prompts_that_share_the_highest_mean_are_not_told_apart_by_their_order() -> None:
    cells = [one for model in ("a", "b") for prompt in ("v1", "v2") for one in persona_cells(model, prompt, [9] * 8)]
    found = effects(board(*cells))
    assert found.best_prompts == {"a": ("v1", "v2"), "b": ("v1", "v2")}
    assert prompt_sentence(found) == "v1 has the highest mean on all 2 models; on a, b it shares it."
