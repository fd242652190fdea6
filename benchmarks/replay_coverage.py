"""How far can replay's intervals be trusted? Simulated users, whose truth is known, through the code that estimates.

    .venv/bin/python -m benchmarks.replay_coverage           # twelve minutes on one core
    .venv/bin/python -m benchmarks.replay_coverage --quick   # three

Users of personas drawn by chance are served by egreedy with a floor of ε (1: anything is shown), and what would have
come of every candidate is known. From these, logs of some users are drawn 500 times: users with replacement, and
choices anew, each as likely as it was to egreedy. All go through replay's estimators. The truth is what the candidate
would have gained over egreedy in these situations, over all users. Beside it stands what it gains where it really
serves and makes its own situations, which no estimate from a log can know.
"""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np

from benchmarks.parts.logged_lives import LoggedLives, chosen_by, drawn_users, gains_when_served, logged
from benchmarks.parts.table import out, show
from tipbench.recommender.features.interface import Floats
from tipbench.recommender.features.v1 import V1
from tipbench.recommender.policies.catalog import POLICIES
from tipbench.recommender.policies.egreedy import DECAY, EGreedy
from tipbench.recommender.policies.interface import Policy
from tipbench.recommender.replay.evaluation import DR, IPS, SNIPS, Columns, Estimated, Trained, first_part, train
from tipbench.recommender.replay.verdict import DECIDES, RULES
from tipbench.server.jobs.simulation_asked import built_in_world

FLOORS = {0.05: (40, 100, 250), 0.2: (40, 100, 250), 1.0: (10, 20, 40)}  # and how many users a log holds
CANDIDATES = ("egreedy/v2", "category-mean", "egreedy", "linucb")
STEPS = 200
FIRST = STEPS // 2  # that the candidate learns from
CHUNK = 50  # users, whose log is replayed at a time
SAMPLES = 500
ENOUGH = 0.90  # of the intervals that are used should cover
WAYS = (IPS, SNIPS, DR)


@dataclass(frozen=True)
class Pool:
    """By user, step after the first part, and candidate."""

    logged: Floats  # propensities of egreedy, and of the one that is asked about
    asked: Floats
    expected: Floats  # by the model of rewards
    rewards: Floats
    served: Floats  # by user alone: what the asked one gains where it really serves

    @property
    def truth(self) -> float:
        return float(((self.asked - self.logged) * self.rewards).sum(axis=-1).mean())

    def sample(self, users: int, chance: np.random.Generator) -> Estimated:
        drawn = chance.integers(0, len(self.served), users)
        up_to = self.logged[drawn].cumsum(axis=-1)
        luck = chance.random(up_to.shape[:2])[..., None] * up_to[..., -1:]
        chosen = (luck >= up_to).sum(axis=-1)[..., None]

        def of_choice(values: Floats) -> Floats:
            found: Floats = np.take_along_axis(values[drawn], chosen, axis=-1).ravel()
            return found

        return Estimated(
            Columns(
                users=np.repeat(np.arange(users), chosen.shape[1]),
                rewards=of_choice(self.rewards),
                logged=of_choice(self.logged),
                target=of_choice(self.asked),
                expected_logged=of_choice(self.expected),
                expected_target=(self.asked * self.expected).sum(axis=-1)[drawn].ravel(),
            )
        )


def simulated_chunk(number: int, floor: float) -> dict[str, Pool]:
    users = drawn_users(built_in_world(2), CHUNK, STEPS, number)
    lives = logged(users, EGreedy("egreedy", V1, decay=replace(DECAY, floor=floor)))
    learned = first_part(lives.rounds, FIRST / STEPS)
    pools = {}
    for name in CANDIDATES:
        candidate = POLICIES[name]
        known = train(lives.rounds, candidate, learned)
        served = gains_when_served(users, lives, candidate, known.states.by_user, FIRST)
        pools[name] = _pool(lives, candidate, known, ~learned, served)
    return pools


def _pool(
    lives: LoggedLives, candidate: Policy[Any], known: Trained, rest: np.ndarray[Any, Any], served: Floats
) -> Pool:
    asked, expected = [], []
    for one in lives.rounds.read(rest):
        asked.append(chosen_by(candidate, known.states.at(one), one.request, one.at_ms).propensities)
        expected.append(known.model.expected(one.user, known.model.features.matrix(one.request)))

    def by_user(values: Floats) -> Floats:
        return values.reshape(len(served), STEPS - FIRST, -1)

    return Pool(
        logged=by_user(lives.propensities[rest]),
        asked=by_user(np.array(asked)),
        expected=by_user(np.array(expected)),
        rewards=by_user(lives.rewards[rest]),
        served=served,
    )


def simulated(floor: float, chunks: int, workers: int) -> dict[str, Pool]:
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(partial(simulated_chunk, floor=floor), range(chunks)))
    return {name: _together([chunk[name] for chunk in found]) for name in CANDIDATES}


def _together(pools: Sequence[Pool]) -> Pool:
    return Pool(*(np.concatenate([vars(pool)[name] for pool in pools]) for name in vars(pools[0])))


class Covering(NamedTuple):
    effective: float
    covers: dict[str, float]
    margins: dict[str, float]
    enough: float  # share of the logs that are not too thin
    covers_where_enough: float
    passes: float  # share of all logs


def covering(pool: Pool, users: int) -> Covering:
    chance = np.random.Generator(np.random.PCG64([2, users]))
    found = [pool.sample(users, chance) for _ in range(SAMPLES)]
    covered = {name: np.array([_covers(one, name, pool.truth) for one in found]) for name in WAYS}
    passed = np.array([one.gains[DECIDES].interval[0] > 0 for one in found])
    effective = np.array([one.weights.effective_sample for one in found])
    enough = effective >= RULES.least_effective
    return Covering(
        float(np.median(effective)),
        {name: float(covered[name].mean()) for name in WAYS},
        {name: float(np.median([one.gains[name].margin for one in found])) for name in WAYS},
        float(enough.mean()),
        float(covered[DECIDES][enough].mean()) if enough.any() else float("nan"),
        float((passed & enough).mean()),
    )


def _covers(found: Estimated, name: str, truth: float) -> bool:
    low, high = found.gains[name].interval
    return low <= truth <= high


def report(floor: float, sizes: Sequence[int], pools: dict[str, Pool]) -> bool:
    rows, passed = [], True
    for name, pool in pools.items():
        for users in sizes:
            one = covering(pool, users)
            passed &= one.enough < 0.5 or one.covers_where_enough >= ENOUGH
            rows.append(
                (
                    name,
                    f"{pool.truth:+.3f}",
                    f"{pool.served.mean():+.3f}",
                    f"{users * STEPS:,}",
                    f"{one.effective:.0f}",
                    *(f"{one.covers[way]:.0%} ±{one.margins[way]:.2f}" for way in WAYS),
                    f"{one.enough:.0%}",
                    f"{one.passes:.1%}",
                )
            )
    columns = ("candidate", "gain", "really", "decisions", "effective", *WAYS, "not thin", "passes")
    show(f"Logs of egreedy with ε ≥ {floor}: how often 95 % intervals of the gain cover it", columns, rows)
    return passed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a fifth of the users")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    chunks = 4 if given.quick else 20
    passed = [report(floor, sizes, simulated(floor, chunks, given.workers)) for floor, sizes in FLOORS.items()]
    out.print(f"{DECIDES} decides. Wanted: where most logs are not too thin, {ENOUGH:.0%} of its intervals cover.")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
