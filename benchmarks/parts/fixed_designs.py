"""What a design of a fixed size takes until the leaderboard's top group is the best row alone, in 80 % of grids."""

from dataclasses import dataclass

import numpy as np

from benchmarks.parts.contest import ROWS, SHAPES, Contest, random_for
from benchmarks.parts.score_worlds import TIMES
from tipbench.statistics.top_group import top_group
from tipbench.statistics.units import paired

POWER = 0.8
MOST = 120_000  # judgements to search up to
_FEWEST = 4  # personas
_STEP = 1.25  # from one number of personas to the next
_DRAWS = 499


@dataclass(frozen=True)
class Design:
    """What is judged of every persona."""

    name: str
    times: int  # scenarios
    candidates: int  # of a row in a scenario

    def judgements(self, personas: float) -> float:
        return personas * self.times * self.candidates * ROWS


DESIGNS = (
    Design("as a leaderboard: 2 scenarios a persona × 5 candidates", TIMES, 5),
    Design("one candidate, one scenario, a new persona each", 1, 1),
)


def judgements_needed(world: str, shape: str, design: Design, grids: int, seed: int) -> float:
    """Return the judgements to single out the best row with a power of 80 %; infinite if more than the most."""
    contest = Contest(world, SHAPES[shape])

    def power(personas: int) -> float:
        random = random_for(seed, "fixed", world, shape, design, personas)
        return sum(_singles_out(contest, design, personas, random) for _ in range(grids)) / grids

    sizes = _sizes(design)
    found: dict[int, float] = {}  # position among the sizes → power
    low, high = -1, len(sizes)  # too few personas; enough of them
    while high - low > 1:
        middle = (low + high) // 2
        found[middle] = power(sizes[middle])
        low, high = (low, middle) if found[middle] >= POWER else (middle, high)
    if high == len(sizes):
        return np.inf
    if low < 0:
        return design.judgements(sizes[high])
    between = np.interp(POWER, [found[low], found[high]], np.log([sizes[low], sizes[high]]))
    return design.judgements(float(np.exp(between)))


def _sizes(design: Design) -> list[int]:
    sizes = [_FEWEST]
    while design.judgements(sizes[-1] * _STEP) <= MOST:
        sizes.append(int(np.ceil(sizes[-1] * _STEP)))
    return sizes


def _singles_out(contest: Contest, design: Design, personas: int, random: np.random.Generator) -> bool:
    order = random.permutation(ROWS)
    scores = contest.draw(random, order, personas, design.times, design.candidates)
    persona_of = np.repeat(np.arange(personas), design.times).tolist()
    members = top_group(paired(scores, persona_of), draws=_DRAWS, seed=int(random.integers(2**32))).members
    return bool(members.sum() == 1 and order[members.argmax()] == 0)
