"""Deciding in rounds, in simulated worlds whose truth is known: what it takes, and how often it is wrong.

    python -m benchmarks.deciding --quick   # four worlds, fewer runs: two minutes
    python -m benchmarks.deciding           # all worlds, 1,000 runs each where wrong winners are counted: an hour

Twelve rows, one better than the others by a gap, or each 0.25 behind the one before ("stairs"). A judgement is one
candidate scored by a judge; an item is one scenario of a persona of its own. Beside it: naming the row with the highest
mean after as many judgements, what a fixed design takes, and the least that any method could take.

Promises: wrong winners at most 5 % in every world, by the upper end of their Clopper–Pearson interval; in the even
world with 700 items and the claim about new scenarios a median of at most 550 judgements at a gap of 2 and 1,400 at 1
(80 % quantiles 650 and 1,900); with a pool of 300 and the claim about the pool at most 1,150 at 1; stopped at an
expected loss of 0.15 at most 350 at 1, with a true loss of at most 0.3 on average. A thousand users who look after
every item, and start over twice, with a rival 0.15 behind: wrong winners at most 5 %.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import beta

from benchmarks.parts.score_worlds import HIGHEST, LOWEST, WORLDS, Floats, World
from benchmarks.parts.table import out, show
from tipbench.statistics.betting import Claim, Rules, decide, wealth_for

ROWS = 12
SPAN = HIGHEST - LOWEST
RIVAL = 0.15  # points behind
QUICK_WORLDS = ("even", "ceiling", "often empty", "personas 0.7")
SHAPES: dict[str, Floats] = {
    "gap 2": np.array([0.0] + [2.0] * (ROWS - 1)),
    "gap 1": np.array([0.0] + [1.0] * (ROWS - 1)),
    "gap 0.5": np.array([0.0] + [0.5] * (ROWS - 1)),
    "stairs": 0.25 * np.arange(ROWS, dtype=np.float64),
}
_KL = 2.65  # kl(0.05, 0.95): what being wrong at most 5 % costs at least


@dataclass(frozen=True)
class Setting:
    """What is simulated."""

    world: str
    shape: str
    claim: Claim
    items: int
    good_enough: float = 0.0  # points


@dataclass(frozen=True)
class Figures:
    """What came of the runs of a setting."""

    runs: int
    decided: float
    wrong: int
    wrong_bound: float  # upper end of the 95 % interval of wrong winners
    median: float
    quantile_80: float
    true_loss: float
    by_means: float  # share in which the highest mean after the same judgements, on all rows, is not the best row


def draw(world: World, random: np.random.Generator, shifts: Floats, items: int) -> Floats:
    """Draw one candidate of each row on one scenario of each persona: items × rows, from 0 to 1."""
    one = replace(world, candidates=1)
    scores: Floats = (one.draw(random, 1, shifts, 2 * items)[0][:, ::2].T - LOWEST) / SPAN
    return scores


def simulate(setting: Setting, runs: int, seed: int) -> list[tuple[bool, bool, int, float, bool]]:
    """Return of each run: decided, wrongly, judgements, true loss of the pick, ranking by means wrong."""
    world = next(one for one in WORLDS if one.name == setting.world)
    random = np.random.default_rng(seed)
    behind = SHAPES[setting.shape]
    rules = Rules(setting.claim, setting.items, good_enough=setting.good_enough / SPAN)
    shifts = world.shifts(behind)
    found = []
    for _ in range(runs):
        order = random.permutation(ROWS)
        scores = draw(world, random, shifts[order], setting.items)
        state = decide(scores, rules)
        # The claim about the pool is about its own means; the one about new scenarios about the true ones.
        truth = scores.mean(axis=0) * SPAN if setting.claim == "pool" else -behind[order]
        lost = float(truth.max() - truth[state.leader if state.winner is None else state.winner])
        wrong = state.winner is not None and lost > 1e-9
        fixed = scores[: max(1, state.judgements // ROWS)].mean(axis=0)
        found.append((state.is_over, wrong, state.judgements, lost, bool(behind[order][fixed.argmax()] > 0)))
    return found


def measure(setting: Setting, runs: int, pool: ProcessPoolExecutor, workers: int = 2) -> Figures:
    """Simulate the runs of a setting in several processes."""
    parts = [runs // workers + (number < runs % workers) for number in range(workers)]
    found = [one for part in pool.map(partial(simulate, setting), parts, range(workers)) for one in part]
    decided, wrong, judgements, losses, by_means = map(np.array, zip(*found, strict=True))
    return Figures(
        runs=runs,
        decided=float(decided.mean()),
        wrong=int(wrong.sum()),
        wrong_bound=upper_bound(int(wrong.sum()), runs),
        median=float(np.median(judgements)),
        quantile_80=float(np.quantile(judgements, 0.8)),
        true_loss=float(losses.mean()),
        by_means=float(by_means.mean()),
    )


def upper_bound(wrong: int, runs: int) -> float:
    """Return the upper end of the two-sided 95 % Clopper–Pearson interval."""
    return 1.0 if wrong == runs else float(beta.ppf(0.975, wrong + 1, runs - wrong))


def least(world: World, shape: str) -> float | None:
    """Return the least that any method needs on average for normal scores and one gap: T* · kl(0.05, 0.95)."""
    behind = SHAPES[shape]
    if len(set(behind[1:])) > 1:
        return None
    random = np.random.default_rng(0)
    differences = np.diff(draw(world, random, world.shifts(behind), 4_000)[:, 1:3], axis=1) * SPAN
    variance = float(differences.var()) / 2  # of what is a row's own
    return float(2 * variance * (1 + np.sqrt(ROWS - 1)) ** 2 / behind[1] ** 2 * _KL)


# Users who look after every item


def look_always(world_name: str, runs: int, restarts: int, seed: int) -> int:
    """Return how many of these users were told a wrong winner: a rival 0.15 behind, two rows or twelve.

    They look after every item. With restarts, they have a third of the items judged anew at some moment, and the
    account starts over with the wealth that this takes.
    """
    world = next(one for one in WORLDS if one.name == world_name)
    random = np.random.default_rng(seed)
    wrong = 0
    for run in range(runs):
        rows = 2 if run % 2 else ROWS
        behind = np.array([0.0, RIVAL] + [1.0] * (rows - 2))
        order = random.permutation(rows)
        shifts = world.shifts(behind)[order]
        scores = draw(world, random, shifts, 160)
        told = False
        for start in range(restarts + 1):
            seen = 160 if start == restarts else int(random.integers(20, 160))
            state = decide(scores[:seen], Rules("new", 160, wealth_for(start), batch=1))
            told |= state.winner is not None and behind[order][state.winner] > 0
            anew = random.random(160) < 1 / 3
            scores[anew] = draw(world, random, shifts, 160)[anew]
        wrong += told
    return wrong


# The command


def main() -> int:
    """Print the tables; return how many promises were broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures to this file")
    given = parser.parse_args()
    runs = 100 if given.quick else 1_000
    worlds = [world for world in WORLDS if not given.quick or world.name in QUICK_WORLDS]
    with ProcessPoolExecutor(2) as pool:
        proofs = _proofs(worlds, runs, pool, given.quick)
        stops = _stops(worlds, runs // 2, pool)
        users = _users(worlds, 200 if given.quick else 1_000, pool)
    broken = [*_broken(proofs), *_broken(stops), *users[1]]
    if given.json:
        figures = [asdict(setting) | asdict(found) for setting, found in {**proofs, **stops}.items()]
        given.json.write_text(json.dumps({"settings": figures, "users": users[0]}, indent=1))
    for one in broken:
        out.print(f"BROKEN: {one}", style="red")
    return len(broken)


Measured = dict[Setting, Figures]


def _proofs(worlds: Sequence[World], runs: int, pool: ProcessPoolExecutor, quick: bool) -> Measured:
    found: Measured = {}
    lines = []
    for world in worlds:
        for shape in SHAPES:
            if quick and shape in ("gap 0.5", "stairs") and world.name != "even":
                continue
            for claim, items in (("new", 700), ("pool", 300)):
                setting = Setting(world.name, shape, "new" if claim == "new" else "pool", items)
                figures = found[setting] = measure(setting, runs, pool)
                bound = least(world, shape) if claim == "new" else None
                lines.append(
                    (
                        world.name, shape, f"{claim}, {items}", f"{figures.decided:.0%}",
                        f"{figures.wrong} of {runs} (≤ {figures.wrong_bound:.1%})",
                        f"{figures.median:,.0f}", f"{figures.quantile_80:,.0f}", f"{figures.by_means:.0%}",
                        "–" if bound is None else f"{figures.median / bound:.1f}×",
                    )
                )  # fmt: skip
                out.print(f"{world.name}, {shape}, {claim}: median {figures.median:,.0f}", style="dim")
    columns = (
        "world",
        "rows",
        "claim, items",
        "decided",
        "wrong winners",
        "median",
        "80 %",
        "by means wrong",
        "× least",
    )
    show("To proof: judgements, twelve rows", columns, lines)
    return found


def _stops(worlds: Sequence[World], runs: int, pool: ProcessPoolExecutor) -> Measured:
    found: Measured = {}
    lines = []
    for world in worlds:
        for shape in SHAPES:
            setting = Setting(world.name, shape, "new", 700, 0.15)
            figures = found[setting] = measure(setting, runs, pool)
            lines.append(
                (
                    world.name, shape, f"{figures.decided:.0%}", f"{figures.median:,.0f}",
                    f"{figures.quantile_80:,.0f}", f"{figures.true_loss:.2f}",
                )
            )  # fmt: skip
    show("Stopped at an expected loss of 0.15", ("world", "rows", "stopped", "median", "80 %", "true loss"), lines)
    return found


def _users(worlds: Sequence[World], runs: int, pool: ProcessPoolExecutor) -> tuple[list[dict[str, object]], list[str]]:
    figures: list[dict[str, object]] = []
    lines, broken = [], []
    jobs = [(world.name, restarts) for world in worlds for restarts in (0, 2)]
    look: Callable[..., int] = look_always
    found = pool.map(
        look, [name for name, _ in jobs], [runs] * len(jobs), [starts for _, starts in jobs], range(len(jobs))
    )
    for (name, restarts), wrong in zip(jobs, found, strict=True):
        share = wrong / runs
        figures.append({"world": name, "restarts": restarts, "runs": runs, "wrong": int(wrong)})
        lines.append((name, str(restarts), f"{wrong} of {runs}", f"{share:.1%}"))
        if share > 0.05:
            broken.append(f"{name}, users with {restarts} restarts: {share:.1%} were told a wrong winner")
    show("Users who look after every item, a rival 0.15 behind", ("world", "restarts", "wrong winners", "share"), lines)
    return figures, broken


_MOST = {  # setting → (median, 80 % quantile, true loss)
    Setting("even", "gap 2", "new", 700): (550, 650, None),
    Setting("even", "gap 1", "new", 700): (1_400, 1_900, None),
    Setting("even", "gap 1", "pool", 300): (1_150, None, None),
    Setting("even", "gap 1", "new", 700, 0.15): (350, None, 0.3),
}


def _broken(found: Measured) -> list[str]:
    broken = []
    for setting, figures in found.items():
        where = f"{setting.world}, {setting.shape}, {setting.claim}"
        if not setting.good_enough and figures.runs >= 1_000 and figures.wrong_bound > 0.05:
            broken.append(f"{where}: wrong winners up to {figures.wrong_bound:.1%}")
        for name, most in zip(("median", "quantile_80", "true_loss"), _MOST.get(setting, ()), strict=False):
            if most is not None and getattr(figures, name) > most:
                broken.append(f"{where}: {name} is {getattr(figures, name):,.2f}, promised at most {most:,}")
    return broken


if __name__ == "__main__":
    sys.exit(main())
