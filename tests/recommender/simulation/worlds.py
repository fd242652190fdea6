"""Small worlds for tests."""

from collections.abc import Sequence
from typing import Any

from tipbench.recommender.records import CategoryProfile, Profile
from tipbench.recommender.simulation.experiment import Plan
from tipbench.recommender.simulation.rollout import Arm, InProcess, Trajectory, arm, roll_out
from tipbench.recommender.simulation.subprocess_runner import SimulationRequest
from tipbench.recommender.simulation.user_model import Draws, draw_life
from tipbench.recommender.simulation.world import Persona, Spread, World

CATEGORIES = ("inbox", "rest", "focus")
POOL = {"tips_per_category": 4, "shortest": 40, "longest": 400, "most_effort_min": 45}


def a_persona(name: str = "somebody", **changes: Any) -> Persona:
    return Persona(**{"name": name, "about": "for a test", "base": -1.0, **changes})


LIKES_INBOX = a_persona("likes-inbox", taste={"inbox": 2.0, "rest": -1.0})
SWITCHES = a_persona("switches", taste={"inbox": 3.0}, taste_after={"rest": 3.0})
TIRES = a_persona("tires", fatigue=1.0)
LIKES_ALL_ALIKE = a_persona("alike", control=True)
MOODY = a_persona("moody", control=True, moods=2.0)
VARIED = a_persona(
    "varied",
    taste={"inbox": 1.0, "rest": -0.5},
    taste_after={"rest": 1.0},
    best_hours={"inbox": 9.0, "rest": 21.0},
    hour_weight=0.8,
    quality_weight=0.5,
    fatigue=0.2,
    drift=0.4,
    spread=Spread(base=0.3, taste=0.5, weights=0.2, hours=1.5, fatigue=0.5),
    profile_features=Profile(preferred_hour=9.0, categories={"inbox": CategoryProfile(shown=5.0, completed=3.0)}),
)
VARIED_CONTROL = a_persona("varied-control", control=True, spread=Spread(base=0.3))


def a_world(*personas: Persona) -> World:
    return World.model_validate(
        {"name": "small", "categories": CATEGORIES, "pool": POOL, "personas": personas or (LIKES_INBOX, MOODY)}
    )


def a_world_of_version_3(*personas: Persona, **changes: Any) -> World:
    """All that version 3 of the simulator adds to a world, and personas that use it."""
    data = {
        "name": "small",
        "simulator": 3,
        "categories": CATEGORIES,
        "pool": {**POOL, "quality": {"judged": 0.5, "correlation": 0.6}},
        "feedback": {"late": 0.3, "mean_delay_h": 18.0, "missing": 0.2},
        "dwell": {"slope": 0.15, "spread": 1.2},
        "personas": personas or (VARIED, VARIED_CONTROL),
    }
    return World.model_validate(data | changes)


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
    """A server that shows what it is told to, and remembers what it was asked, and which events it learned from."""

    def __init__(self, places: Sequence[int]) -> None:
        self.asked: list[Any] = []
        self.asked_at: list[int] = []
        self.learned: dict[str, float] = {}  # by event, in order
        self._places = places

    def choose(self, request: Any, at_ms: int) -> int:
        self.asked.append(request)
        self.asked_at.append(at_ms)
        return self._places[len(self.asked) - 1]

    def learn(self, request: Any, reward: float) -> None:
        assert request.event_id not in self.learned
        self.learned[request.event_id] = reward
