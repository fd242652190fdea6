"""How often does the gate let through what it must not, and stop what it should not? On seeds that set no threshold.

    .venv/bin/python -m benchmarks.gate                    # 200 gates of each kind: over an hour on two cores
    .venv/bin/python -m benchmarks.gate --gates 20         # minutes
    .venv/bin/python -m benchmarks.gate --first-seed 0 --gates 13    # what the thresholds were set on

Candidates against `egreedy`: itself with other luck (A/A), version 2 with its new dimensions permuted (placebo),
version 2 that is told of the user as a whole only (the trap of 0012), version 2, version 2 in a world where it should
lose, and the mean per category. A gate is 30 lives of each persona; no two gates share a seed. What is not version 2
counts as promoted by the conditions alone, although the self-checks might still have stopped it.

With --keep FILE, gates that are done are kept there, and another run goes on from them.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from scipy.stats import beta

from benchmarks.parts.table import out, show
from tipbench.recommender.simulation.experiment import Plan, Results, simulate
from tipbench.recommender.simulation.gate import RULES, compare
from tipbench.recommender.simulation.rollout import ARMS, FLAT, Arm, placebo_of
from tipbench.recommender.simulation.world import World, load_world

FIRST_SEED = 1_000_000  # thresholds were set on seeds below 10,000
INCUMBENT, CANDIDATE = ARMS["egreedy"], ARMS["egreedy/v2"]
AGAIN = replace(INCUMBENT, name="A/A", luck="-again")
_AT_A_TIME = 4
_TIPS = Path(__file__).parents[1] / "src" / "tipbench" / "bench" / "suites" / "data" / "tip" / "world.yaml"
_LOSING = Path(__file__).parent / "worlds" / "version-1.yaml"


@dataclass(frozen=True)
class Kind:
    name: str
    arm: Arm
    world: str  # "tips", or one in which version 2 should lose
    least: float = 0.0  # share of promotions that is wanted
    most: float = 1.0

    @property
    def wanted(self) -> str:
        if self.least:
            return f"at least {100 * self.least:g} %"
        return "to be seen" if self.most == 1 else f"at most {100 * self.most:g} %" if self.most else "never"


def kinds() -> list[Kind]:
    placebo = placebo_of(CANDIDATE, INCUMBENT)
    assert placebo
    return [
        Kind("A/A: egreedy with other luck", AGAIN, "tips", most=0.01),
        Kind("placebo: new dimensions permuted", placebo, "tips", most=0.01),
        Kind("user-level features only", FLAT, "tips", most=0.01),
        Kind("egreedy/v2", CANDIDATE, "tips", least=0.95),
        Kind("egreedy/v2 where it should lose", CANDIDATE, "losing", most=0.0),
        Kind("category-mean", ARMS["category-mean"], "tips"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gates", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=30, help="a gate")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    found = list(_kept(given.keep)) if given.keep else []
    worlds = {"tips": load_world(_TIPS), "losing": load_world(_LOSING)}
    begun, before = time.perf_counter(), len(found)
    while len(found) < given.gates:
        count = min(_AT_A_TIME, given.gates - len(found))
        gates = list(_gates(worlds, len(found), count, given))
        found += gates
        if given.keep:
            with given.keep.open("a") as file:
                file.writelines(json.dumps(gate) + "\n" for gate in gates)
        spent = time.perf_counter() - begun
        out.print(f"{len(found)} of {given.gates} gates, {spent / (len(found) - before):.1f} s each")
    sys.exit(0 if _show(found[: given.gates], given) else 1)


def _gates(worlds: dict[str, World], first: int, count: int, given: argparse.Namespace) -> Iterator[dict[str, bool]]:
    """Of these gates, whether each kind is promoted."""
    start = given.first_seed + first * given.seeds
    results = {}
    for name, world in worlds.items():
        arms = [kind.arm for kind in kinds() if kind.world == name]
        plan = Plan(world, (INCUMBENT, *arms), range(start, start + count * given.seeds), given.steps, 10)
        results[name] = simulate(plan, given.workers, lambda _: None)
    for number in range(count):
        yield _gate({name: _part(found, number, given.seeds) for name, found in results.items()})


def _gate(results: dict[str, Results]) -> dict[str, bool]:
    passed = {kind.name: compare(results[kind.world], kind.arm, INCUMBENT).passed for kind in kinds()}
    checks = ("A/A: egreedy with other luck", "placebo: new dimensions permuted")
    passed["egreedy/v2"] = passed["egreedy/v2"] and not any(passed[check] for check in checks)
    return passed


def _part(results: Results, number: int, seeds: int) -> Results:
    """One gate's lives out of those of several."""
    plan, chosen = results.plan, slice(number * seeds, (number + 1) * seeds)
    return Results(replace(plan, seeds=plan.seeds[chosen]), results.sums[:, :, chosen])


def _kept(path: Path) -> Iterator[dict[str, bool]]:
    if path.exists():
        yield from map(json.loads, path.read_text().splitlines())


def _show(found: Sequence[dict[str, bool]], given: argparse.Namespace) -> bool:
    """Whether every share is as it is wanted."""
    rows, reached = [], True
    for kind in kinds():
        promoted = sum(gate[kind.name] for gate in found)
        low, high = clopper_pearson(promoted, len(found))
        share = promoted / len(found)
        as_wanted = kind.least <= share <= kind.most
        reached = reached and as_wanted
        wanted = kind.wanted if as_wanted else f"{kind.wanted}: MISSED"
        rows.append((kind.name, str(len(found)), str(promoted), f"{share:.1%}", f"{low:.1%} – {high:.1%}", wanted))
    show(
        f"Promotions by gates of {given.seeds} seeds and {given.steps} decisions ({RULES})",
        ("candidate", "gates", "promoted", "share", "95 % (Clopper–Pearson)", "wanted"),
        rows,
    )
    return reached


def clopper_pearson(hits: int, of: int) -> tuple[float, float]:
    low = 0.0 if hits == 0 else float(beta.ppf(0.025, hits, of - hits + 1))
    return low, 1.0 if hits == of else float(beta.ppf(0.975, hits + 1, of - hits))


if __name__ == "__main__":
    main()
