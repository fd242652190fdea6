"""What a simulation is asked to do, as data that crosses from one process to the other."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from tipbench.core.errors import InvalidInput
from tipbench.recommender.simulation.arms import Arm, arm
from tipbench.recommender.simulation.experiment import Plan
from tipbench.recommender.simulation.gate import FIRST_SEED, USUAL, gate_arms
from tipbench.recommender.simulation.world import World
from tipbench.statistics.paired import FEWEST

_MOST_DECISIONS = 10**8  # hours
_MOST_POINTS = 2 * 10**7  # of all curves: 640 MB of sums
_MOST_DRAWN = 10**7  # numbers that decide what is offered in one life


class SimulationRequest(BaseModel):
    """`kind` gate: the arms are candidate and incumbent, and what the gate needs besides is added."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["run", "gate"] = "run"
    world: World
    arms: Annotated[tuple[str, ...], Field(min_length=1, max_length=20)]
    first_seed: Annotated[int, Field(ge=0, le=10**9)] = FIRST_SEED
    seeds: Annotated[int, Field(ge=1, le=100_000)] = USUAL.seeds
    steps: Annotated[int, Field(ge=1, le=100_000)] = USUAL.steps
    offered: Annotated[int, Field(ge=1, le=200)] = USUAL.offered
    http: bool = False

    def plan(self) -> Plan:
        """Raises InvalidInput for what does not fit together."""
        arms = tuple(arm(name) for name in self.arms)
        if self.kind == "gate":
            arms = self._gate_arms(arms)
        if len(set(self.arms)) < len(self.arms):
            raise InvalidInput(f"each policy is simulated once; given: {', '.join(self.arms)}")
        seeds = range(self.first_seed, self.first_seed + self.seeds)
        plan = Plan(self.world, arms, seeds, self.steps, self.offered)
        self._check_size(plan)
        return plan

    def _gate_arms(self, arms: tuple[Arm, ...]) -> tuple[Arm, ...]:
        if len(arms) != 2:
            raise InvalidInput("a gate has one candidate and one incumbent")
        if arms[0] == arms[1]:
            raise InvalidInput(f"{self.arms[0]} is candidate and incumbent; name two policies")
        if self.seeds < FEWEST:
            raise InvalidInput(f"{self.seeds} seeds are too few for a gate; take {FEWEST} or more, 30 are usual")
        return gate_arms(*arms)

    def _check_size(self, plan: Plan) -> None:
        tips = self.world.tips
        if self.offered > tips:
            raise InvalidInput(f"{self.offered} candidates can't be offered from a pool of {tips} tips; offer fewer")
        if self.steps * tips > _MOST_DRAWN:
            raise InvalidInput(
                f"{self.steps:,} steps with a pool of {tips:,} tips take too much memory; the product may be "
                f"{_MOST_DRAWN:,}: take fewer steps, or a smaller pool"
            )
        if plan.decisions > _MOST_DECISIONS:
            raise InvalidInput(
                f"{plan.decisions:,} decisions are too many for one simulation, {_MOST_DECISIONS:,} are the most; take "
                "fewer seeds, steps, policies or personas"
            )
        points = len(plan.arms) * plan.lives * plan.bins
        if points > _MOST_POINTS:
            raise InvalidInput(
                f"{plan.lives:,} lives take too much memory ({len(plan.arms)} policies serve each); take fewer seeds, "
                "policies or personas"
            )
