"""Simulations that were asked for, with what they found."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from tipbench.core.errors import StateRefused
from tipbench.recommender.promotion.gate_records import SimulationPlan
from tipbench.server.jobs.interface import Job
from tipbench.server.jobs.progress import Progress
from tipbench.server.jobs.simulation_asked import SimulationAsked
from tipbench.server.jobs.simulations import SimulationRunner

# What a simulation found, as its JSON tells it: by policy and metric, over all personas and for each of them.


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Metric(_Part):
    """A decision; a margin is how far its 95 % interval reaches to either side, None where one seed can't tell."""

    mean: float
    margin: float | None
    total: float  # over a life
    over_time: list[float]
    over_time_margin: list[float | None]


ByPolicy = Mapping[str, Mapping[str, Metric]]  # policy → metric → what was found


class Persona(_Part):
    name: str
    about: str
    control: bool
    arms: ByPolicy


class Outcome(_Part):
    plan: SimulationPlan
    bins: list[int]  # the last decision of each point in time
    overall: ByPolicy
    personas: list[Persona]

    @property
    def policies(self) -> Sequence[str]:
        return list(self.overall)


def read_outcome(content: bytes | Mapping[str, Any], whose: str) -> Outcome:
    try:
        return Outcome.model_validate_json(content) if isinstance(content, bytes) else Outcome.model_validate(content)
    except ValidationError as error:
        raise StateRefused(
            f"{whose} was kept in a form that this tipbench does not know; start it again with this one"
        ) from error


@dataclass(frozen=True)
class Simulation:
    """One moment of it."""

    job: Job
    asked: SimulationAsked
    progress: Progress

    @property
    def passed(self) -> bool | None:
        """Of a gate that has come to its verdict."""
        is_told = self.asked.kind == "gate" and self.job.state == "finished"
        return self.job.exit_status == 0 if is_told else None

    @property
    def gate(self) -> str | None:
        """The id of the record that was kept of it."""
        return self.progress.kept_as or None


class Simulations:
    def __init__(self, runner: SimulationRunner, live: Callable[[], str]) -> None:
        self._runner = runner
        self._live = live

    def start(self, asked: SimulationAsked) -> Simulation:
        """A gate without an incumbent is held against the policy that is live now."""
        if asked.kind == "gate" and asked.incumbent is None:
            asked = asked.model_copy(update={"incumbent": self._live()})
        return self._seen(self._runner.start(asked))

    def newest(self, limit: int, before_ms: int | None = None) -> list[Simulation]:
        return [self._seen(job) for job in self._runner.simulations(limit, before_ms)]

    def one(self, simulation_id: str) -> Simulation:
        return self._seen(self._runner.simulation(simulation_id))

    def log(self, simulation_id: str) -> str:
        return self._runner.log(simulation_id)

    def cancel(self, simulation_id: str) -> Simulation:
        return self._seen(self._runner.cancel(simulation_id))

    def outcome(self, simulation_id: str) -> Outcome:
        return read_outcome(self.outcome_json(simulation_id), f"what simulation {simulation_id} found")

    def outcome_json(self, simulation_id: str) -> bytes:
        """Raises NotFound where it has found nothing, or not yet."""
        return self._runner.outcome(simulation_id)

    def close(self) -> None:
        self._runner.close()

    def _seen(self, job: Job) -> Simulation:
        return Simulation(job, SimulationAsked.model_validate(job.config), self._runner.progress(job.id))
