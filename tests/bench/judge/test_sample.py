"""What goes into a batch, and that judges get the same candidates."""

import random

from hypothesis import given
from hypothesis import strategies as st

from tipbench.bench.judge.sample import (
    ANCHORS,
    FIRST_BATCH,
    REPEATS,
    SIZES,
    Mix,
    anchors_for,
    fitting_mix,
    mix_for,
    repeats_for,
    sample_candidates,
    take_layers,
)


def test_small_batches_carry_fewer_anchors_and_repeats() -> None:
    assert [anchors_for(n) for n in (1, 4, 10, 16, 500)] == [4, 4, 10, ANCHORS, ANCHORS]
    assert [repeats_for(n) for n in (1, 3, 9, 500)] == [0, 1, 3, REPEATS]


def test_a_new_judge_gets_enough_anchors_and_later_ones_take_a_fifth() -> None:
    assert [mix_for(items, is_new=True) for items in SIZES] == [
        Mix(6, 12, 2), Mix(24, 12, 4), Mix(60, 12, 8), Mix(140, 12, 8),
    ]  # fmt: skip
    assert [mix_for(items, is_new=False) for items in SIZES] == [
        Mix(16, 3, 1), Mix(32, 6, 2), Mix(64, 12, 4), Mix(136, 16, 8),
    ]  # fmt: skip
    assert mix_for(FIRST_BATCH, is_new=True, usable_anchors=5) == Mix(13, 5, 2), "candidates take the room"


@given(st.integers(1, 400), st.integers(1, 400), st.booleans(), st.integers(0, 40))
def test_a_batch_has_its_size_and_no_more_candidates_than_wait(
    items: int, candidates: int, is_new: bool, anchors: int
) -> None:
    mix = fitting_mix(items, candidates, is_new, anchors)
    assert 1 <= mix.candidates <= candidates
    assert sum(mix) <= items
    assert mix.anchors <= anchors
    if not is_new:
        assert mix.anchors + mix.repeats <= items / 5
    if candidates >= mix_for(items, is_new, anchors).candidates:
        assert sum(mix) == items


@given(st.text(), st.integers(), st.integers(0, 30), st.integers(1, 40))
def test_candidates_depend_on_cell_and_seed_alone(key: str, seed: int, count: int, sample: int) -> None:
    chosen = sample_candidates(key, seed, count, sample)
    assert chosen == sample_candidates(key, seed, count, sample)
    assert len(set(chosen)) == len(chosen) == min(count, sample)
    assert set(chosen) <= set(range(count))


@given(st.text(), st.integers(), st.integers(0, 30), st.integers(1, 40))
def test_a_larger_sample_begins_with_the_smaller_one(key: str, seed: int, count: int, sample: int) -> None:
    assert sample_candidates(key, seed, count, sample + 1)[:sample] == sample_candidates(key, seed, count, sample)


Cells = dict[str, list[tuple[int, int]]]
CELLS = st.dictionaries(
    st.text(), st.lists(st.integers(), min_size=1, max_size=5).map(lambda items: list(enumerate(items)))
)


@given(CELLS, st.integers(1, 30))
def test_a_limit_is_filled_with_one_of_each_cell_before_a_second_of_any(cells: Cells, limit: int) -> None:
    named = {key: [(number, (key, number)) for number, _ in items] for key, items in cells.items()}
    taken = take_layers(random.Random(1), named, limit)
    assert len(taken) == min(limit, sum(map(len, cells.values())))
    if any(number > 0 for _, number in taken):
        assert {key for key, number in taken if number == 0} == set(cells)
    assert len(take_layers(random.Random(1), named, None)) == sum(map(len, cells.values()))


def test_preferred_cells_are_drawn_before_others() -> None:
    cells = {str(number): [(0, number)] for number in range(40)}
    first = {str(number) for number in range(5)}
    assert {0, 1, 2, 3, 4} < set(take_layers(random.Random(1), cells, 8, first))


def test_what_was_judged_before_counts_as_the_first_of_its_cell() -> None:
    cells = {"seen": [(1, "second")], "fresh": [(0, "first"), (1, "second of fresh")]}
    assert take_layers(random.Random(1), cells, 1) == ["first"]
