"""Decision logs for tests of replay."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from benchmarks.parts.logged_lives import drawn_users, write_log

from tests.recommender.making import a_request
from tipbench.recommender.features.v1 import V1
from tipbench.recommender.policies.egreedy import Decay, EGreedy
from tipbench.recommender.records import Request
from tipbench.recommender.replay.rounds import Impressions, Round, Rounds, RowMask
from tipbench.server.jobs.simulation_asked import built_in_world

HOUR_MS = 3_600_000
ANYTHING = EGreedy("egreedy", V1, decay=Decay(first=1.0, floor=1.0))  # every candidate as likely as any other


def log_of_chance(folder: Path, users: int, steps: int) -> None:
    """Simulated users who are shown anything at all: the most that a log can tell about others."""
    write_log(folder, drawn_users(built_in_world(2), users, steps, 3), ANYTHING)


def rounds_in_memory(given: Sequence[tuple[int, Request, int, float, float]]) -> Rounds:
    """From (user, request, chosen, propensity, reward), in the order of time."""
    rounds = [Round(place, *one, at_ms=1 + place * HOUR_MS) for place, one in enumerate(given)]

    def read(wanted: RowMask) -> Iterator[Round]:
        return (one for one in rounds if wanted[one.row])

    users = np.array([one.user for one in rounds], dtype=np.intp)
    at_ms = np.array([one.at_ms for one in rounds], dtype=np.int64)
    order = users.argsort(kind="stable")
    shown = [rounds[place].request.candidates[rounds[place].chosen].category for place in order.tolist()]
    return Rounds(users, at_ms, read, impressions=Impressions(users[order], at_ms[order], shown))


def some_rounds(users: Sequence[int], seed: int = 0) -> Rounds:
    """One for each number of a user, with chosen ones and rewards by chance."""
    chance = np.random.Generator(np.random.PCG64(seed))
    return rounds_in_memory(
        [
            (
                user,
                a_request(f"e{place}", f"u{user}", hour=float(chance.uniform(0, 24))),
                int(chance.integers(0, 10)),
                float(chance.uniform(0.1, 1)),
                float(chance.uniform(-1, 1)),
            )
            for place, user in enumerate(users)
        ]
    )
