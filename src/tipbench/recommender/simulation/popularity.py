"""The tip that most users like: a baseline that knows tips and nothing of the user.

What is popular is counted in lives apart from those that are simulated: a tip is shown at random to users of all
personas of the world, and its mean reward counts. So an arm's lives stay independent of each other, and a gate's too.
It says something where lives share their tips, from version 3 of the simulator on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from tipbench.recommender.features.interface import Features, category_number
from tipbench.recommender.policies.category_mean import CategoryMean, Means
from tipbench.recommender.policies.egreedy import Decay
from tipbench.recommender.records import Request
from tipbench.recommender.simulation.user_model import Life, draw_life
from tipbench.recommender.simulation.world import World

MOST_POPULAR = "most-popular"
_SEEDS = range(1000, 1010)  # neither calibrated on nor used by gates
_STEPS = 200


def rows(request: Request) -> list[list[float]]:
    return [[category_number(candidate.id)] for candidate in request.candidates]


TIP = Features("tip", ("tip",), rows)


@dataclass(frozen=True, kw_only=True)
class MostPopular(CategoryMean):
    """Chooses by the mean reward of each tip over other users, shrunk towards 0; the user's own rewards are added."""

    name: str = MOST_POPULAR
    features: Features = TIP
    decay: Decay = Decay(first=0.05, floor=0.05)  # noqa: RUF009 - it is immutable
    world: World

    @property
    def parameters(self) -> Mapping[str, float | str]:
        return {**super().parameters, "counted_lives": len(_SEEDS), "counted_from_seed": _SEEDS.start}

    def new_state(self) -> Means:
        return Means(sums=dict(_popularity(self.world.model_dump_json())))


@lru_cache(maxsize=4)
def _popularity(world_json: str) -> dict[float, tuple[float, int]]:
    """Return the sum and number of the rewards of each tip."""
    world = World.model_validate_json(world_json)
    found: dict[float, tuple[float, int]] = {}
    for persona in world.personas:
        for seed in _SEEDS:
            draws = draw_life(world, persona, seed, _STEPS, 1)
            life = Life(world, draws)
            for step, (tip,) in enumerate(draws.offered.tolist()):
                number = category_number(f"tip-{tip}")
                total, count = found.get(number, (0.0, 0))
                found[number] = (total + life.show(step, 0).reward, count + 1)
    return found
