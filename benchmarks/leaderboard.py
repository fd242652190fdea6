"""How far the leaderboard's statistics can be trusted: simulated grids whose truth is known.

    .venv/bin/python -m benchmarks.leaderboard
    .venv/bin/python -m benchmarks.leaderboard --quick
    .venv/bin/python -m benchmarks.leaderboard --winners
    .venv/bin/python -m benchmarks.leaderboard --seed 2 --json figures.json

The worlds that scores come from are in parts/score_worlds.py. Promised: 95 % intervals hold the true mean in at least
93 % of cases, with 8, 16 and 64 scenarios; of grids of twelve equal rows at most 5 % shut out any row; the top group
and the test of the leader together name a false winner in at most 5 % of grids of 2, 3 and 12 rows, where personas are
the units. Everything else is reported. Shuffles are fewer than on a leaderboard (249 for equal rows, otherwise 499,
for winners of few rows 999, instead of 4,999): the test is as exact, and a little weaker. `--quick` has few
repetitions, so its promises are lowered by three standard errors. So is the one about winners for each world by itself;
over all promised worlds together it is held as it is, for each number of rows and scenarios.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

from benchmarks.parts.leaderboard_simulations import (
    RIVALS,
    ROWS,
    Record,
    borrowed,
    calibration,
    coverage,
    equality,
    losses,
    planned,
    power,
    steady,
)
from benchmarks.parts.score_worlds import STEADY, WORLDS
from benchmarks.parts.table import out, show, verdict
from benchmarks.parts.winners import all_false_winners, all_winner_power, pooled, show_false_winners, show_power

_SIZES = (8, 16, 64)
_GAPS = (0.5, 1.0, 2.0)
_EQUAL_DRAWS, _DRAWS = 249, 499
_COVERS, _KEEPS = 0.93, 0.95
_INTERVALS = ("ours", "t over scenarios", "t over personas", "bootstrap", "Gaffke, no groups")
_NAMED = {world.name: world for world in WORLDS}


@dataclass(frozen=True)
class Effort:
    """How many repetitions of each kind."""

    intervals: int
    equal: dict[int, int]  # by the number of scenarios
    few_rows: int
    gaps: int
    probabilities: int
    plans: int
    losses: int
    borrowing: int
    steady: int
    winners: int
    exact: bool  # whether promises are held against the figures themselves


FULL = Effort(4000, {4: 1000, 8: 4000, 16: 4000, 64: 4000}, 4000, 400, 1500, 300, 400, 600, 2000, 2000, True)
QUICK = Effort(300, {8: 150, 16: 100}, 150, 20, 150, 40, 30, 100, 100, 60, False)


def _percent(share: float) -> str:
    return f"{share:.1%}"


def _wanted(share: float, repetitions: int, exact: bool) -> float:
    return share if exact else share - 3 * sqrt(share * (1 - share) / repetitions)


def _worlds() -> None:
    for world in WORLDS:
        out.print(f"[bold]{world.name}[/bold] (mean {world.mean():.2f}): {world.stands_for}")


def _coverage(effort: Effort, seed: int) -> tuple[list[Record], bool]:
    records = coverage(WORLDS, _SIZES, effort.intervals, seed)
    rows = [
        (
            record["world"],
            str(record["scenarios"]),
            *(f"{record[name]['coverage']:.1%} ({record[name]['width']:.1f})" for name in _INTERVALS),
        )
        for record in records
    ]
    show(
        f"A. 95 % intervals that hold the true mean, of {effort.intervals} (in brackets: mean width)",
        ("world", "scenarios", *_INTERVALS),
        rows,
    )
    least = min((record for record in records if record["promised"]), key=lambda record: record["ours"]["coverage"])
    return records, verdict(
        f"least coverage in a promised world ({least['world']}, {least['scenarios']} scenarios)",
        least["ours"]["coverage"],
        _wanted(_COVERS, effort.intervals, effort.exact),
        unit="",
        precision=".3f",
    )


def _equality(effort: Effort, seed: int) -> tuple[list[Record], bool]:
    records = [
        equality(world, ROWS, scenarios, grids, _EQUAL_DRAWS, seed)
        for world in WORLDS
        for scenarios, grids in effort.equal.items()
    ]
    _show_equality(
        "B. grids of twelve equal rows in which some row is shut out",
        records,
    )
    promised = [record for record in records if record["promised"] and record["scenarios"] in _SIZES]
    most = max(promised, key=lambda record: record["ours"])
    passed = verdict(
        f"grids that shut out nobody, fewest in a promised world ({most['world']}, {most['scenarios']} scenarios)",
        1 - most["ours"],
        _wanted(_KEEPS, most["grids"], effort.exact),
        unit="",
        precision=".3f",
    )
    few = [
        equality(world, rows, scenarios, effort.few_rows, _EQUAL_DRAWS, seed)
        for world in WORLDS
        for rows in (3, 2)
        for scenarios in (8, 16)
    ]
    _show_equality("B. the same with three and with two rows", few)
    out.print("Where scenarios are the units, a persona's own likes pass for the row's: then no promise is made.")
    return [*records, *few], passed


def _show_equality(title: str, records: Sequence[Record]) -> None:
    rows = [
        (
            record["world"],
            f"{record['rows']} × {record['scenarios']}",
            record["units"],
            _percent(record["ours"]),
            f"≤ {record['ours at most']:.1%}",
            _percent(record["ours over scenarios"]),
            *(_percent(record[name]) for name in RIVALS),
        )
        for record in records
    ]
    show(title, ("world", "grid", "units", "ours", "bound", "over scenarios", *RIVALS), rows)


def _power(effort: Effort, seed: int) -> list[Record]:
    worlds = ("even", "ceiling", "skewed", "often empty", "personas 0.3", "personas 0.7")
    records = []
    for stairs, title in (
        (False, "C. one row better than eleven equal ones"),
        (True, "C. stairs: each row a quarter of the gap behind the one before it"),
    ):
        some = [
            power(_NAMED[name], scenarios, gap, stairs, effort.gaps, _DRAWS, seed)
            for name in (("even", "personas 0.7") if stairs else worlds)
            for scenarios in _SIZES
            for gap in _GAPS
        ]
        columns = [
            (
                record["world"],
                str(record["scenarios"]),
                f"{record['realised gap']:.2f}",
                *(
                    " / ".join(
                        f"{record[name][figure]:.0%}"
                        for figure in ("exactly the best", "worse rows out", "best row out")
                    )
                    for name in ("ours", "Holm")
                ),
                f"{record['ours']['group size']:.1f}",
                f"{record['by means']:.0%}",
            )
            for record in some
        ]
        show(
            f"{title}, of {effort.gaps}: exactly the best row left / worse rows shut out / best row shut out",
            ("world", "scenarios", "gap", "ours", "Holm t", "our group's size", "highest mean is best"),
            columns,
        )
        records += some
    return records


def _calibration(effort: Effort, seed: int) -> list[Record]:
    settings = (
        *((name, size, 0.7) for name in ("even", "personas 0.7") for size in (8, 16)),
        ("ceiling", 8, 0.7),
        *((name, 8, 2.0) for name in ("even", "personas 0.7")),
    )
    records = [
        calibration(_NAMED[name], size, spread, effort.probabilities, 2000, seed) for name, size, spread in settings
    ]
    methods = ("ours", "no unseen unit", "two unseen units", "by means")
    show(
        f"D. probability of being the best: Brier score of {effort.probabilities} grids (knowing nothing: 0.92)",
        ("world", "scenarios", "spread", *methods),
        [
            (
                record["world"],
                str(record["scenarios"]),
                f"{record['spread']:g}",
                *(f"{record[name]['brier']:.3f}" for name in methods),
            )
            for record in records
        ],
    )
    for name in methods[:3]:
        bins = records[0][name]["bins"]
        show(
            f"D. said and true, {name}",
            ("world", *(f"{one['from']:g}–{one['to']:g}" for one in bins)),
            [
                (
                    f"{record['world']}, {record['scenarios']}, {record['spread']:g}",
                    *(f"{one['said']:.0%} → {one['true']:.0%}" if one["rows"] else "" for one in record[name]["bins"]),
                )
                for record in records
            ],
        )
    return records


def _losses(effort: Effort, seed: int) -> tuple[list[Record], bool]:
    shapes = ((0.0, False), (1.0, False), (2.0, False), (1.0, True))
    records = [
        losses(world, size, gap, stairs, effort.losses, 2000, seed)
        for world in WORLDS
        for size in ((8, 16, 32, 64) if effort.exact else (8, 32))
        for gap, stairs in shapes
    ]
    low = [one for one in records if one["true"] > 0.05 and one["said"] < one["true"] / 2]
    show(
        f"H. picking the row with the highest mean: the loss that is said and the true one, of {effort.losses} grids",
        ("world", "scenarios", *("stairs" if stairs else f"gap {gap:g}" for gap, stairs in shapes)),
        [
            (
                some[0]["world"],
                str(some[0]["scenarios"]),
                *(f"{one['said']:.2f} → {one['true']:.2f}{' !' if one in low else ''}" for one in some),
            )
            for some in (records[at : at + len(shapes)] for at in range(0, len(records), len(shapes)))
        ],
    )
    warned = min((one["said to be too low"] for one in low), default=1.0)
    return records, verdict(
        f"share of grids that say so, least where it is less than half the truth (marked !, {len(low)} settings)",
        warned,
        0.5,
        unit="",
        precision=".2f",
    )


def _planned(effort: Effort, seed: int) -> list[Record]:
    records = [
        planned(_NAMED[name], rows, gap, effort.plans, _DRAWS, seed)
        for name in ("even", "ceiling", "personas 0.7")
        for rows in (ROWS, 2)
        for gap in (_GAPS if effort.exact else (2.0,))
    ]
    show(
        f"E. told apart with the number of personas that was said to be needed for 80 %, of {effort.plans}",
        ("world", "rows", "gap", "scatter", "critical", "personas", "told apart"),
        [
            (
                record["world"],
                str(record["rows"]),
                f"{record['gap']:g}",
                f"{record['scatter']:.2f}",
                f"{record['critical']:.2f}",
                str(record["personas"]),
                f"{record['told apart']:.0%}",
            )
            for record in records
        ],
    )
    return records


def _borrowed(effort: Effort, seed: int) -> list[Record]:
    everything = 1e9
    records = [
        borrowed(degrees, scenarios, effort.borrowing, _EQUAL_DRAWS, seed, _NAMED)
        for scenarios in (_SIZES if effort.exact else (8,))
        for degrees in (0.0, 8.0, everything)
    ]
    show(
        f"F. other borrowed degrees of freedom (shipped: 8), of {effort.borrowing}: some of equal rows shut out, where "
        "they scatter unequally; worse rows shut out at a gap of 2",
        ("scenarios", "borrowed", "scatter 2×: wrong", "scatter 6×: wrong", "even: out", "personas 0.7: out"),
        [
            (
                str(record["scenarios"]),
                "all" if record["degrees"] == everything else f"{record['degrees']:g}",
                *(_percent(record[name]) for name in ("scatter 2×", "scatter 6×", "even", "personas 0.7")),
            )
            for record in records
        ],
    )
    return records


def _steady(effort: Effort, seed: int) -> list[Record]:
    records = [
        steady(best, others, scenarios, effort.steady, _EQUAL_DRAWS, seed)
        for best, others in zip((2, 4), STEADY, strict=True)
        for scenarios in (8, 12, 16, 64)
    ]
    show(
        f"G. equally good rows that scatter above rows that do not, of {effort.steady}: one of the best shut out",
        ("rows", "scenarios", "best row out", "bound", "worse rows out"),
        [
            (
                f"{record['best']} above {ROWS - record['best']} that {record['others']}",
                str(record["scenarios"]),
                _percent(record["best row out"]),
                f"≤ {record['best row out at most']:.1%}",
                _percent(record["worse rows out"]),
            )
            for record in records
        ],
    )
    return records


def _winners(effort: Effort, seed: int) -> tuple[list[Record], bool]:
    wrong = all_false_winners(WORLDS, effort.winners, seed, quick=not effort.exact)
    show_false_winners(wrong)
    worlds = [_NAMED[name] for name in ("even", "personas 0.7", "ceiling")]
    right = all_winner_power(worlds, (effort.gaps // 2, _DRAWS), seed, quick=not effort.exact)
    show_power(right)

    checks = (
        ("a promised world", [one for one in wrong if one["promised"]], False),
        ("all promised worlds together", pooled(wrong), effort.exact),
    )
    held = []
    for where, records, exact in checks:
        margins = [1 - one["both"] - _wanted(_KEEPS, one["grids"], exact) for one in records]
        most = records[margins.index(min(margins))]
        what = f"{most['rows']} rows, {most['shape']}, {most['scenarios']} scenarios"
        held.append(
            verdict(
                f"grids without a false winner, fewest in {where} ({most.get('world', 'all')}, {what})",
                1 - most["both"],
                _wanted(_KEEPS, most["grids"], exact),
                unit="",
                precision=".3f",
            )
        )
    return [*wrong, *right], all(held)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few repetitions: whether it runs, rather than figures")
    parser.add_argument("--winners", action="store_true", help="only false winners and how often the best row is named")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write all figures")
    given = parser.parse_args()
    effort = QUICK if given.quick else FULL
    started = time.monotonic()
    named, held = _winners(effort, given.seed)
    if given.winners:
        _finish(given.json, {"seed": given.seed, "winners": named}, started)
        return 0 if held else 1
    _worlds()
    intervals, covered = _coverage(effort, given.seed)
    equal, passed = _equality(effort, given.seed)
    lost, warned = _losses(effort, given.seed)
    figures = {
        "seed": given.seed,
        "coverage": intervals,
        "equality": equal,
        "losses": lost,
        "power": _power(effort, given.seed),
        "calibration": _calibration(effort, given.seed),
        "planned": _planned(effort, given.seed),
        "borrowed": _borrowed(effort, given.seed),
        "steady": _steady(effort, given.seed),
        "winners": named,
    }
    _finish(given.json, figures, started)
    return 0 if covered and passed and warned and held else 1


def _finish(file: Path | None, figures: Record, started: float) -> None:
    if file:
        file.write_text(json.dumps(figures, indent=1) + "\n")
    out.print(f"{time.monotonic() - started:.0f} s, of which {time.process_time():.0f} s of computing")


if __name__ == "__main__":
    sys.exit(main())
