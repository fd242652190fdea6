"""Deciding in rounds, in simulated worlds whose truth is known: what it takes, and how often it is wrong.

    python -m benchmarks.deciding --quick   # four worlds, fewer runs: two minutes
    python -m benchmarks.deciding           # all worlds, 1,000 runs each where wrong winners are counted: 90 minutes

Twelve rows, one better than the others by a gap, or each 0.25 behind the one before ("stairs"). A judgement is one
candidate scored by a judge; an item is one scenario of a persona of its own. Beside it: naming the row with the highest
mean after as many judgements, what designs of a fixed size take, and the least that any method could take.

Promises: wrong winners at most 5 % in every world, by the upper end of their Clopper–Pearson interval; in the even
world with 700 items and the claim about new scenarios a median of at most 550 judgements at a gap of 2 and 1,400 at 1
(80 % quantiles 650 and 1,900); with a pool of 300 and the claim about the pool at most 1,150 at 1; stopped at an
expected loss of 0.15 at most 350 at 1, with a true loss of at most 0.3 on average. A thousand users who look after
every item, stop when it suits them, and start over twice, with a rival 0.15 behind: wrong winners at most 5 %, by the
upper end of the interval as well.
"""

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.parts.contest import SHAPES, Contest
from benchmarks.parts.deciding_simulations import Figures, Setting, look_always, measure, upper_bound
from benchmarks.parts.fixed_designs import DESIGNS, MOST, POWER, Design, judgements_needed
from benchmarks.parts.score_worlds import WORLDS
from benchmarks.parts.table import out, show
from tipbench.statistics.betting import CLAIMS, Claim

QUICK_WORLDS = ("even", "ceiling", "often empty", "personas 0.7")
WRONG = 0.05
ITEMS: dict[Claim, int] = {"new": 700, "pool": 300}
MANY_ITEMS = 3_000  # for small gaps, in the even world
USERS_ITEMS = 160
STOP = 0.15  # points
PROMISED = {  # setting → at most: median, 80 % quantile, true loss
    Setting("even", "gap 2", "new", 700): (550, 650, None),
    Setting("even", "gap 1", "new", 700): (1_400, 1_900, None),
    Setting("even", "gap 1", "pool", 300): (1_150, None, None),
    Setting("even", "gap 1", "new", 700, STOP): (350, None, 0.3),
    Setting("even", "gap 1", "pool", 300, STOP): (350, None, 0.3),
}
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_ENOUGH = 1_000  # runs to hold a bound of wrong winners against its promise

Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Effort:
    """How many repetitions of each kind."""

    proofs: int
    long_proofs: int  # with many items; for quantiles only
    stops: int
    users: int
    grids: int  # of a fixed design, at each size


FULL = Effort(proofs=1_000, long_proofs=300, stops=500, users=1_000, grids=120)
QUICK = Effort(proofs=100, long_proofs=10, stops=50, users=100, grids=30)


@dataclass(frozen=True)
class FixedSize:
    """A design of a fixed size for a world and a shape."""

    world: str
    shape: str
    design: Design

    def __str__(self) -> str:
        return f"{self.world}, {self.shape}, {self.design.name}"


class Benchmark:
    """All measurements, one after the other; each is shown, and its figures are in the report as soon as it is done."""

    def __init__(self, quick: bool, seed: int, pool: ProcessPoolExecutor) -> None:
        self._effort, self._seed, self._pool = QUICK if quick else FULL, seed, pool
        self._worlds = [world.name for world in WORLDS if not quick or world.name in QUICK_WORLDS]
        # In a quick run, small gaps are measured in one world: they take the longest.
        self._shapes = {
            world: [shape for shape in SHAPES if not quick or world == "even" or shape in ("gap 2", "gap 1")]
            for world in self._worlds
        }
        self._proofs: dict[Setting, Figures] = {}
        self.report: dict[str, Any] = {"seed": seed}
        self.broken: list[str] = []

    def _run(self, function: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[tuple[Job, Result]]:
        """Run jobs in several processes; show each when it and all before it are done."""
        started = time.monotonic()
        for number, (job, result) in enumerate(zip(jobs, self._pool.map(function, jobs), strict=True), 1):
            out.print(f"{number} of {len(jobs)}, {time.monotonic() - started:.0f} s: {job}", style="dim")
            yield job, result

    def prove(self) -> None:
        """Measure decisions on the way to proof."""
        settings = [
            Setting(world, shape, claim, ITEMS[claim])
            for world, shapes in self._shapes.items()
            for shape in shapes
            for claim in ("new", "pool")
        ]
        settings += [Setting("even", shape, "new", MANY_ITEMS) for shape in ("gap 0.5", "stairs")]
        self._proofs = dict(self._run(partial(_proved, effort=self._effort, seed=self._seed), settings))
        self.report["proofs"] = [_record(*one) for one in self._proofs.items()]
        self.broken += _broken(self._proofs)
        show(
            "To proof: judgements of twelve rows",
            ("world", "rows", "claim, items", "decided", "wrong winners", "median", "80 %", "by means wrong"),
            [
                (
                    setting.world, setting.shape, f"{setting.claim}, {setting.items:,}", f"{found.decided:.0%}",
                    _wrong(found.wrong, found.runs), _count(found.median), _count(found.quantile_80),
                    f"{found.by_means:.0%}",
                )
                for setting, found in self._proofs.items()
            ],
        )  # fmt: skip

    def stop(self) -> None:
        """Measure decisions that stop when picking the leader is good enough."""
        settings = [Setting(world, shape, "new", ITEMS["new"], STOP) for world in self._worlds for shape in SHAPES]
        settings += [Setting("even", shape, "pool", ITEMS["pool"], STOP) for shape in SHAPES]
        stops = dict(self._run(partial(measure, runs=self._effort.stops, seed=self._seed), settings))
        self.report["stops"] = [_record(*one) for one in stops.items()]
        self.broken += _broken(stops)
        show(
            f"Stopped at an expected loss of {STOP:g}, {self._effort.stops} runs each",
            ("world", "rows", "claim, items", "stopped", "median", "80 %", "true loss"),
            [
                (
                    setting.world, setting.shape, f"{setting.claim}, {setting.items}", f"{found.decided:.0%}",
                    _count(found.median), _count(found.quantile_80), f"{found.true_loss:.2f}",
                )
                for setting, found in stops.items()
            ],
        )  # fmt: skip

    def compare(self) -> None:
        """Measure what designs of a fixed size take, and show it beside decisions in rounds and the least."""
        jobs = [
            FixedSize(world, shape, design)
            for world, shapes in self._shapes.items()
            for shape in shapes
            for design in DESIGNS
        ]
        needed = dict(self._run(partial(_needed, grids=self._effort.grids, seed=self._seed), jobs))
        lines, records = [], []
        for world, shapes in self._shapes.items():
            for shape in shapes:
                least = Contest(world, SHAPES[shape]).least()
                fixed = [needed[FixedSize(world, shape, design)] for design in DESIGNS]
                many = Setting(world, shape, "new", MANY_ITEMS)
                bets = self._proofs[many if many in self._proofs else replace(many, items=ITEMS["new"])]
                lines.append(
                    (
                        world, shape, *(_count(one, f"> {MOST:,}") for one in fixed), _count(bets.quantile_80),
                        _count(bets.median), f"{least:,.0f}",
                        f"{bets.median / least:.1f}×" if math.isfinite(bets.median) else "–",
                    )
                )  # fmt: skip
                named = {design.name: _finite(one) for design, one in zip(DESIGNS, fixed, strict=True)}
                records.append({"world": world, "shape": shape, "least": least, "fixed": named})
        self.report["fixed"] = records
        show(
            f"Judgements to single out the best row: of a fixed size, in {POWER:.0%} of grids ({self._effort.grids} a "
            "size), as a leaderboard (2 scenarios a persona × 5 candidates) or with a new persona each; and in rounds",
            ("world", "rows", "leaderboard", "persona each", "rounds, 80 %", "median", "least", "median ÷ least"),
            lines,
        )

    def look_always(self) -> None:
        """Count users who were told a wrong winner."""
        jobs = [Setting(world, "users", claim, USERS_ITEMS) for world in self._worlds for claim in CLAIMS]
        users = [found for _, found in self._run(partial(look_always, users=self._effort.users, seed=self._seed), jobs)]
        self.report["users"] = [asdict(one) for one in users]
        kinds = {"until_named": "until a winner is named", "until_tired": "until tired", "restarting": "two restarts"}
        for one in users:
            for kind, said in kinds.items():
                if one.users >= _ENOUGH and (bound := upper_bound(getattr(one, kind), one.users)) > WRONG:
                    self.broken.append(f"{one.world}, {one.claim}, users {said}: wrong winners up to {bound:.1%}")
        show(
            "Users who look after every item, a rival 0.15 behind: wrong winners",
            ("world", "claim", *kinds.values()),
            [(one.world, one.claim, *(_wrong(getattr(one, kind), one.users) for kind in kinds)) for one in users],
        )


def _proved(setting: Setting, effort: Effort, seed: int) -> Figures:
    return measure(setting, effort.long_proofs if setting.items == MANY_ITEMS else effort.proofs, seed)


def _needed(job: FixedSize, grids: int, seed: int) -> float:
    return judgements_needed(job.world, job.shape, job.design, grids, seed)


def _broken(measured: dict[Setting, Figures]) -> list[str]:
    broken = []
    for setting, found in measured.items():
        if not setting.good_enough and found.runs >= _ENOUGH and found.wrong_bound > WRONG:
            broken.append(f"{setting}: wrong winners up to {found.wrong_bound:.1%}")
        for name, most in zip(("median", "quantile_80", "true_loss"), PROMISED.get(setting, ()), strict=False):
            if most is not None and getattr(found, name) > most:
                broken.append(f"{setting}: {name} is {getattr(found, name):,.2f}, promised at most {most:,}")
    return broken


def _wrong(wrong: int, runs: int) -> str:
    return f"{wrong} of {runs:,} (≤ {upper_bound(wrong, runs):.1%})"


def _count(judgements: float, otherwise: str = "undecided") -> str:
    return f"{judgements:,.0f}" if math.isfinite(judgements) else otherwise


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _record(setting: Setting, found: Figures) -> dict[str, Any]:
    finite = {"median": _finite(found.median), "quantile_80": _finite(found.quantile_80)}
    return asdict(setting) | asdict(found) | finite


def main() -> int:
    """Show all measurements; return 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="four worlds and fewer runs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write all figures, after each part")
    given = parser.parse_args()
    started = time.monotonic()
    os.environ.update(_ONE_THREAD)  # of the processes, which share the cores among them
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        benchmark = Benchmark(given.quick, given.seed, pool)
        for part in (benchmark.prove, benchmark.compare, benchmark.stop, benchmark.look_always):
            part()
            if given.json:
                given.json.write_text(json.dumps(benchmark.report, indent=1) + "\n")
    for one in benchmark.broken:
        out.print(f"BROKEN: {one}", style="red")
    out.print(f"{len(benchmark.broken) or 'No'} promises broken; {(time.monotonic() - started) / 60:.0f} minutes")
    return 1 if benchmark.broken else 0


if __name__ == "__main__":
    sys.exit(main())
