"""False winners and power of the leaderboard's two tests: the top group, and the leader against every other row.

A grid names a winner if its leader beats every other row, or else if the top group holds a single row. The winner is
false if it is not the best row; where several rows are exactly tied for the best, if any row is named at all.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.parts.leaderboard_simulations import ROWS, Record, at_most, random_of
from benchmarks.parts.score_worlds import TIMES, Floats, World, personas
from benchmarks.parts.table import show
from tipbench.statistics.planning import separable
from tipbench.statistics.top_group import top_group
from tipbench.statistics.units import NEGLIGIBLE, paired
from tipbench.statistics.winner import leader_against_others

Winners = NDArray[np.intp]  # of each grid the row that is named, or NOBODY
NOBODY = -1
EQUAL, TIED, RIVAL = "all equal", "two tied, others 2 behind", "a rival 0.15 behind, others 1"
_GAPS = (2.0, 1.0, 0.5)
_DRAWS, _DRAWS_OF_FEW_ROWS, _LEADER_DRAWS = 249, 999, 1_999
_ALL_SIZES, _SIZES = (4, 8, 12, 16, 64, 300), (8, 16, 64)  # scenarios; all where a false winner is most likely
_SHAPES: tuple[tuple[str, int, tuple[int, ...]], ...] = (
    (EQUAL, 2, _ALL_SIZES),
    (TIED, 3, _ALL_SIZES),
    (RIVAL, 2, _SIZES),
    (EQUAL, 3, _SIZES),
    (RIVAL, 3, _SIZES),
    (EQUAL, ROWS, _SIZES),
    (TIED, ROWS, _SIZES),
    (RIVAL, ROWS, _SIZES),
)


def behind_of(shape: str, rows: int) -> Floats:
    """How far each row's true mean lies behind the best."""
    first, others = {EQUAL: ((0.0, 0.0), 0.0), TIED: ((0.0, 0.0), 2.0), RIVAL: ((0.0, 0.15), 1.0)}[shape]
    return np.array([*first, *[others] * (rows - 2)])


def named_winners(scores: Floats, groups: Sequence[int] | None, draws: int) -> dict[str, Winners]:
    """Which row each test names in each grid, and which one both together do, as the leaderboard combines them.

    `groups` is the persona of each scenario; None: each scenario is a unit of its own.
    """
    rows = scores.shape[1]
    over_personas = groups if groups is None or separable(rows, len(set(groups))) else None
    before, leaders = [], []
    for number, grid in enumerate(scores):
        members = top_group(paired(grid, over_personas), draws=draws, seed=number).members
        before.append(int(members.argmax()) if members.sum() == 1 else NOBODY)
        winner = leader_against_others(paired(grid, groups), _LEADER_DRAWS, number).winner()
        leaders.append(NOBODY if winner is None else winner)
    top, leader = np.array(before), np.array(leaders)
    return {"top group": top, "leader": leader, "both": np.where(leader == NOBODY, top, leader)}


def false_winners(world: World, shape: str, size: tuple[int, int], grids: int, draws: int, seed: int) -> Record:
    """In how many grids of so many rows and scenarios (`size`) a row is named that is not the one best row."""
    rows, scenarios = size
    shifts = world.shifts(behind_of(shape, rows))
    truth = np.array([world.mean(shift, other=bool(row % 2)) for row, shift in enumerate(shifts)])
    best = np.flatnonzero(truth >= truth.max() - NEGLIGIBLE)
    scores = world.draw(random_of(seed, "winners", world.name, shape, rows, scenarios), grids, shifts, scenarios)
    right = best[0] if len(best) == 1 else NOBODY
    over_personas = separable(rows, scenarios // TIMES)
    record: Record = {
        "world": world.name,
        "promised": world.promised and over_personas,
        "shape": shape,
        "rows": rows,
        "scenarios": scenarios,
        "units of the top group": "personas" if over_personas else "scenarios",
        "grids": grids,
    }
    for name, named in named_winners(scores, personas(scenarios).tolist(), draws).items():
        wrong = int(((named != NOBODY) & (named != right)).sum())
        record[name] = wrong / grids
        record[f"{name} at most"] = at_most(wrong, grids)
    return record


def all_false_winners(worlds: Sequence[World], grids: int, seed: int, quick: bool) -> list[Record]:
    """`false_winners` of all shapes and sizes: so many grids where they are most likely, fewer elsewhere."""
    records = []
    for world in worlds:
        for shape, rows, sizes in _SHAPES:
            if shape != EQUAL and world.other_chances is not None:
                continue  # its two kinds of rows have equal means only where none is moved
            likely = (shape, rows) in ((EQUAL, 2), (TIED, 3)) and world.promised
            for size in (16,) if quick else sizes:
                share = 1 if likely and size >= 16 else 2 if rows < ROWS or shape == TIED else 5
                draws = _DRAWS if rows == ROWS else _DRAWS_OF_FEW_ROWS
                records.append(false_winners(world, shape, (rows, size), grids // share, draws, seed))
    return records


def pooled(records: Sequence[Record]) -> list[Record]:
    """The share of false winners over all promised worlds, for each shape, number of rows and of scenarios."""
    settings: dict[tuple[str, int, int], list[Record]] = {}
    for one in records:
        if one["promised"]:
            settings.setdefault((one["shape"], one["rows"], one["scenarios"]), []).append(one)
    return [
        {
            **dict(zip(("shape", "rows", "scenarios"), setting, strict=True)),
            "grids": sum(one["grids"] for one in found),
            "both": sum(one["both"] * one["grids"] for one in found) / sum(one["grids"] for one in found),
        }
        for setting, found in settings.items()
    ]


def winner_power(world: World, units: int, single: bool, gap: float, effort: tuple[int, int], seed: int) -> Record:
    """How often the best of twelve rows is named, the others behind by the gap; `effort` is grids and shuffles.

    `single`: each persona has one scenario, and one candidate of a cell is judged. Otherwise two scenarios and five.
    """
    grids, draws = effort
    world = replace(world, candidates=1) if single else world
    shifts = world.shifts(np.array([0.0, *[gap] * (ROWS - 1)]))
    random = random_of(seed, "winner power", world.name, units, single, gap)
    scores = world.draw(random, grids, shifts, units * TIMES)
    groups = None if single else personas(units * TIMES).tolist()
    named = named_winners(scores[:, :, ::TIMES] if single else scores, groups, draws)
    return {
        "world": world.name,
        "personas": units,
        "judgements": ROWS * (units if single else units * TIMES * world.candidates),
        "gap": gap,
        "grids": grids,
        **{name: float((winners == 0).mean()) for name, winners in named.items()},
        "wrong": float((named["both"] > 0).mean()),
    }


def all_winner_power(worlds: Sequence[World], effort: tuple[int, int], seed: int, quick: bool) -> list[Record]:
    """`winner_power` of single scenarios on 50 and 150 personas, and of the usual design on 8 and 32."""
    settings = [
        (units, single, gap) for units, single in ((50, True), (150, True), (8, False), (32, False)) for gap in _GAPS
    ]
    return [
        winner_power(world, units, single, gap, effort, seed)
        for world in worlds
        for units, single, gap in (settings[:1] if quick else settings)
    ]


def show_false_winners(records: Sequence[Record]) -> None:
    """Print a line for each world, shape and number of rows, with the figures of all sizes in it."""
    lines: dict[tuple[str, str, int], list[Record]] = {}
    for record in records:
        lines.setdefault((record["world"], record["shape"], record["rows"]), []).append(record)
    show(
        "I. grids that name a false winner, in percent ('s': the top group is over scenarios there)",
        ("world", "rows", "", "scenarios", "top group", "leader", "both"),
        [
            (
                world,
                str(rows),
                shape,
                ", ".join(str(one["scenarios"]) for one in found),
                *(_figures(found, name) for name in ("top group", "leader", "both")),
            )
            for (world, shape, rows), found in lines.items()
        ],
    )


def _figures(records: Sequence[Record], name: str) -> str:
    by_scenario = {"personas": "", "scenarios": "s" if name != "leader" else ""}
    return ", ".join(f"{100 * one[name]:.1f}{by_scenario[one['units of the top group']]}" for one in records)


def show_power(records: Sequence[Record]) -> None:
    show(
        "I. grids that name the best of twelve rows: the top group alone, the leader's test alone, both",
        ("world", "personas", "judgements", "gap", "top group", "leader", "both", "wrong"),
        [
            (
                one["world"],
                str(one["personas"]),
                f"{one['judgements']:,}",
                f"{one['gap']:g}",
                *(f"{one[name]:.0%}" for name in ("top group", "leader", "both", "wrong")),
            )
            for one in records
        ],
    )
