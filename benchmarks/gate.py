"""How often does the gate let through what it must not, and stop what it should not? On seeds that set no threshold.

    .venv/bin/python -m benchmarks.gate                       # 100 gates of each kind: half an hour on two busy cores
    .venv/bin/python -m benchmarks.gate --gates 4             # a look: a minute
    .venv/bin/python -m benchmarks.gate --first-seed 4000 --gates 4    # what the thresholds were set on

Candidates against `egreedy/v2` in version 3 of the world: itself with other luck (A/A), `ucb/v3` with its new features
permuted, with a prior fitted to permuted rewards, with its prior's sign turned, with the qualities of tips shuffled,
with a turned prior as the file that is to be served, and as it is, with a prior and without. A gate is 30 lives of each
persona; no two gates share a seed, and all kinds share the lives of a gate. Controls count as promoted by the
conditions on a candidate alone. Promised: A/A and each control are promoted at most once in 100 gates, and `ucb/v3`
with a prior, whose whole gate has to pass, in at least 95. Exit status 1 if that is not so.

All lives of a gate are played at once, as arrays (`benchmarks.parts.batched_lives`), which takes a tenth of the
time. In every gate, one life of each persona is also played as the product does it, by every arm, and has to go the
same way.

With --keep FILE, gates that are done are kept there, and another run goes on from them.
"""

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from scipy.stats import beta

from benchmarks.parts.batched_lives import simulate_batched
from benchmarks.parts.table import out, show
from tipbench.recommender.policies.catalog import POLICIES
from tipbench.recommender.policies.ucb import Ucb
from tipbench.recommender.simulation.experiment import Plan, Results
from tipbench.recommender.simulation.gate import RULES, Lineup, compare, judge, lineup_of
from tipbench.recommender.simulation.rollout import ARMS, Arm, SimulatedPrior
from tipbench.recommender.simulation.simulated_prior import fit_simulated
from tipbench.recommender.simulation.world import World
from tipbench.server.jobs.simulation_asked import built_in_world

FIRST_SEED = 1_000_000  # thresholds were set on seeds below 10,000
INCUMBENT, CANDIDATE = ARMS["egreedy/v2"], "ucb/v3"
LEAST_SAME = 0.99  # of lives; rounding may decide between two tips that are as good
CHECKED, SAME = "lives checked", "went the same way"
Gate = dict[str, int]  # by kind, whether it was promoted; and how many lives were checked


@dataclass(frozen=True)
class Kind:
    name: str
    promoted: Callable[[Results], bool]
    least: float = 0.0  # share of promotions that is wanted
    most: float = 1.0

    @property
    def wanted(self) -> str:
        if self.least:
            return f"at least {100 * self.least:g} %"
        return "to be seen" if self.most == 1 else f"at most {100 * self.most:g} %"


class Contest:
    """All arms of all kinds of gates."""

    def __init__(self, world: World) -> None:
        policy = POLICIES[CANDIDATE]
        assert isinstance(policy, Ucb)
        served = replace(fit_simulated(SimulatedPrior("fitted", CANDIDATE), world), digest="as-served")
        self.world = world
        self.lineup = lineup_of(Arm(f"{CANDIDATE}@served", policy.with_prior(served)), INCUMBENT, world)
        self.without = lineup_of(ARMS[CANDIDATE], INCUMBENT, world)
        turned = replace(served, digest="turned", mean=-served.mean, tips={})
        self.badly_served = replace(
            self.lineup, as_served=Arm(f"{CANDIDATE}, turned prior as served", policy.with_prior(turned))
        )

    @property
    def arms(self) -> tuple[Arm, ...]:
        """Each once; the candidate without a prior is also an arm of the gate with one, under another name."""
        found = {arm.name: arm for lineup in (self.lineup, self.badly_served, self.without) for arm in lineup.arms}
        del found[CANDIDATE]
        return tuple(found.values())

    def kinds(self) -> list[Kind]:
        def passes(lineup: Lineup) -> Callable[[Results], bool]:
            return lambda results: judge(results, lineup).passed

        def control(arm: Arm, lineup: Lineup) -> Callable[[Results], bool]:
            return lambda results: compare(results, arm, lineup).passed

        controls = [Kind(one.arm.name, control(one.arm, self.lineup), most=0.01) for one in self.lineup.controls]
        plain = replace(self.without, candidate=replace(self.without.candidate, name=f"{CANDIDATE}, no prior"))
        return [
            *controls,
            *(Kind(f"{one.arm.name}", control(one.arm, plain), most=0.01) for one in plain.controls[1:]),
            Kind(f"{CANDIDATE} with a turned prior to be served", passes(self.badly_served), most=0.01),
            Kind(f"{CANDIDATE} with a prior", passes(self.lineup), least=0.95),
            Kind(f"{CANDIDATE} without a prior", passes(plain)),
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gates", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=30, help="a gate")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    found = list(_kept(given.keep)) if given.keep else []
    contest = Contest(built_in_world(3))
    begun, before = time.perf_counter(), len(found)
    numbers = range(before, given.gates)
    forked = multiprocessing.get_context("fork")  # workers take over the contest and its fitted priors
    with ProcessPoolExecutor(given.workers, forked, _take_over, (contest, given)) as pool:
        for gate in pool.map(_gate, numbers):
            found.append(gate)
            if given.keep:
                with given.keep.open("a") as file:
                    file.write(json.dumps(gate) + "\n")
            spent = time.perf_counter() - begun
            out.print(f"{len(found)} of {given.gates} gates, {spent / (len(found) - before):.1f} s each")
    sys.exit(0 if _show(contest, found[: given.gates], given) else 1)


_worker: tuple[Contest, argparse.Namespace]


def _take_over(contest: Contest, given: argparse.Namespace) -> None:
    global _worker
    _worker = contest, given


def _gate(number: int) -> Gate:
    """Of one gate, whether each kind is promoted."""
    contest, given = _worker
    start = given.first_seed + number * given.seeds
    plan = Plan(contest.world, contest.arms, range(start, start + given.seeds), given.steps, 10)
    checked = range(number % given.seeds, plan.lives, given.seeds)
    results, same = simulate_batched(plan, checked)
    promoted = {kind.name: int(kind.promoted(results)) for kind in contest.kinds()}
    return {**promoted, CHECKED: len(checked) * len(plan.arms), SAME: same}


def _kept(path: Path) -> Iterator[Gate]:
    if path.exists():
        yield from map(json.loads, path.read_text().splitlines())


def _show(contest: Contest, found: Sequence[Gate], given: argparse.Namespace) -> bool:
    """Whether every share is as it is wanted."""
    rows, reached = [], True
    for kind in contest.kinds():
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
    checked, same = (sum(gate[name] for gate in found) for name in (CHECKED, SAME))
    out.print(f"{same} of {checked} lives that were also played one by one, as the product does it, went the same way")
    return reached and same >= LEAST_SAME * checked


def clopper_pearson(hits: int, of: int) -> tuple[float, float]:
    low = 0.0 if hits == 0 else float(beta.ppf(0.025, hits, of - hits + 1))
    return low, 1.0 if hits == of else float(beta.ppf(0.975, hits + 1, of - hits))


if __name__ == "__main__":
    main()
