"""Small worlds for tests."""

from collections.abc import Sequence
from typing import Any

from tipbench.recommender.simulation.experiment import Plan
from tipbench.recommender.simulation.rollout import Arm, InProcess, Trajectory, arm, roll_out
from tipbench.recommender.simulation.subprocess_runner import SimulationRequest
from tipbench.recommender.simulation.user_model import Draws, draw_life
from tipbench.recommender.simulation.world import Persona, World

CATEGORIES = ("inbox", "rest", "focus")
POOL = {"tips_per_category": 4, "shortest": 40, "longest": 400, "most_effort_min": 45}


def a_persona(name: str = "somebody", **changes: Any) -> Persona:
    return Persona(**{"name": name, "about": "for a test", "base": -1.0, **changes})


LIKES_INBOX = a_persona("likes-inbox", taste={"inbox": 2.0, "rest": -1.0})
SWITCHES = a_persona("switches", taste={"inbox": 3.0}, taste_after={"rest": 3.0})
TIRES = a_persona("tires", fatigue=1.0)
LIKES_ALL_ALIKE = a_persona("alike", control=True)
MOODY = a_persona("moody", control=True, moods=2.0)


def a_world(*personas: Persona) -> World:
    return World.model_validate(
        {"name": "small", "categories": CATEGORIES, "pool": POOL, "personas": personas or (LIKES_INBOX, MOODY)}
    )


def a_request(*names: str, world: World | None = None, **changes: Any) -> SimulationRequest:
    arms = names or ("egreedy", "egreedy/v2")
    return SimulationRequest(
        **{"world": world or a_world(), "arms": arms, "seeds": 3, "steps": 12, "offered": 5, **changes}
    )


def a_plan(*names: str, world: World | None = None, **changes: Any) -> Plan:
    return a_request(*names, world=world, **changes).plan()


def a_life(persona: Persona, seed: int = 0, steps: int = 40, offered: int = 6) -> Draws:
    return draw_life(a_world(persona), persona, seed, steps, offered)


def served(persona: Persona, by: Arm | str = "egreedy", seed: int = 0, steps: int = 40) -> Trajectory:
    who = arm(by) if isinstance(by, str) else by
    return roll_out(a_world(persona), persona, seed, a_life(persona, seed, steps), who, InProcess(who.policy))


class Recording:
    """A server that shows what it is told to, and remembers what it was asked."""

    def __init__(self, places: Sequence[int]) -> None:
        self.asked: list[Any] = []
        self.learned: list[float] = []
        self._places = places

    def choose(self, request: Any, at_ms: int) -> int:
        self.asked.append(request)
        return self._places[len(self.asked) - 1]

    def learn(self, request: Any, reward: float) -> None:
        assert request is self.asked[-1]
        self.learned.append(reward)
