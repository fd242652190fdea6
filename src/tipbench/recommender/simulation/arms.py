"""Who is compared: a policy, and what it is told of the user."""

import random
from dataclasses import dataclass, replace
from typing import Any, Literal

from tipbench.core.errors import InvalidInput
from tipbench.core.identity import derived_seed
from tipbench.core.untrusted import shown
from tipbench.recommender.features.interface import Features
from tipbench.recommender.policies.catalog import POLICIES
from tipbench.recommender.policies.interface import Policy
from tipbench.recommender.records import Request

Told = Literal["by-category", "flat"]


@dataclass(frozen=True)
class Arm:
    """`luck` tells two arms of one policy apart: each has its own chance, as two users have."""

    name: str
    policy: Policy[Any]
    told: Told = "by-category"
    luck: str = ""


@dataclass(frozen=True)
class _Permuted:
    """Rows of features in which some dimensions belong to another candidate."""

    features: Features
    dimensions: tuple[int, ...]

    def __call__(self, request: Request) -> list[list[float]]:
        rows = self.features.rows(request)
        parts = [[row[place] for place in self.dimensions] for row in rows]
        random.Random(derived_seed("placebo", request.user_id, request.event_id)).shuffle(parts)
        for row, part in zip(rows, parts, strict=True):
            for place, value in zip(self.dimensions, part, strict=True):
                row[place] = value
        return rows


# with luck of its own: over HTTP it must not be the user that its namesake serves
FLAT = Arm("egreedy/v2-flat", POLICIES["egreedy/v2"], told="flat", luck="-flat")
ARMS = {**{name: Arm(name, policy) for name, policy in POLICIES.items()}, FLAT.name: FLAT}


def placebo_of(candidate: Arm, incumbent: Arm) -> Arm | None:
    """The candidate, but what it sees and the incumbent doesn't belongs to another tip: as large, as varied, and worth
    nothing. None where it sees nothing new."""
    features = candidate.policy.features
    new = [place for place, name in enumerate(features.names) if name not in incumbent.policy.features.names]
    if not new:
        return None

    permuted = Features(f"{features.version}-placebo", features.names, _Permuted(features, tuple(new)))
    return replace(candidate, name=f"{candidate.name}-placebo", policy=candidate.policy.seeing(permuted))


def arm(name: str) -> Arm:
    if name not in ARMS:
        raise InvalidInput(f"there is no policy {shown(name)} to simulate; there are {', '.join(ARMS)}")
    return ARMS[name]
