"""Which candidates, anchors and repeats go into a batch, so that a person gets through it in a sitting."""

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

ANCHORS = 16  # a batch's; docs/decisions/0013 says what they can tell
REPEATS = 8
SECONDS_AN_ITEM = 45
_SITTING_S = 2 * 3600
_FEWEST_ANCHORS = 4
_Item = TypeVar("_Item")


class BatchSize(NamedTuple):
    """How much of an experiment goes into a batch."""

    sample: int | None = None  # candidates of each cell; None: as many as fit into two hours
    limit: int | None = None  # candidates in all


WHAT_FITS = BatchSize()
EVERYTHING = BatchSize(sample=1_000_000)


def anchors_for(candidates: int) -> int:
    return min(ANCHORS, max(_FEWEST_ANCHORS, candidates))


def repeats_for(candidates: int) -> int:
    return min(REPEATS, candidates // 3)


def seconds_for(items: int) -> int:
    """About how long a person takes."""
    return items * SECONDS_AN_ITEM


def fitting_sample(candidates_by_cell: Sequence[int]) -> int:
    """The most candidates a cell that two hours leave time for; at least one."""
    most = max(candidates_by_cell, default=1)
    for sample in range(most, 1, -1):
        items = sum(min(sample, count) for count in candidates_by_cell)
        if seconds_for(items + anchors_for(items) + repeats_for(items)) <= _SITTING_S:
            return sample
    return 1


def sampled(key: str, seed: int, count: int, sample: int) -> list[int]:
    """The candidates of one cell. They depend on the cell and the seed alone: judges get the same ones."""
    return sorted(random.Random(f"{seed}/{key}").sample(range(count), min(sample, count)))


def limited(drawn: random.Random, cells: Mapping[str, Sequence[_Item]], limit: int | None) -> list[_Item]:
    """Whole cells, drawn until the limit is reached; a cell that does not fit any more is left for the next batch."""
    order = sorted(cells)
    if limit is not None:
        drawn.shuffle(order)
    taken: list[_Item] = []
    for key in order:
        if limit is None or len(taken) + len(cells[key]) <= limit:
            taken += cells[key]
    return taken
