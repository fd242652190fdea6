"""Requested simulations and their outcomes."""

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

# A simulation's outcome, as in its JSON: by policy and metric, over all personas and for each of them.


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Metric(_Part):
    """A metric per decision. A margin is half the width of the 95 % interval; None for a single seed."""

    mean: float
    margin: float | None
    total: float  # over a whole life
    over_time: list[float]
    over_time_margin: list[float | None]


ByPolicy = Mapping[str, Mapping[str, Metric]]  # policy → metric name → metric


class Persona(_Part):
    name: str
    about: str
    control: bool
    arms: ByPolicy


class Outcome(_Part):
    plan: SimulationPlan
    bins: list[int]  # the number of the last decision in each bin of time
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
            f"{whose} was stored in a format that this version of tipbench does not know; start it again"
        ) from error


@dataclass(frozen=True)
class Simulation:
    """A snapshot of a simulation."""

    job: Job
    asked: SimulationAsked
    progress: Progress

    @property
    def passed(self) -> bool | None:
        """Return whether a gate has passed; None for a run, or before the verdict."""
        has_verdict = self.asked.kind == "gate" and self.job.state == "finished"
        return self.job.exit_status == 0 if has_verdict else None

    @property
    def gate(self) -> str | None:
        """Return the id of the gate's stored record, if any."""
        return self.progress.kept_as or None


class Simulations:
    def __init__(self, runner: SimulationRunner, live: Callable[[], str]) -> None:
        self._runner = runner
        self._live = live

    def start(self, asked: SimulationAsked) -> Simulation:
        """Start a simulation; a gate without an incumbent uses the current live policy."""
        if asked.kind == "gate" and asked.incumbent is None:
            asked = asked.model_copy(update={"incumbent": self._live()})
        return self._simulation(self._runner.start(asked))

    def newest(self, limit: int, before_ms: int | None = None) -> list[Simulation]:
        return [self._simulation(job) for job in self._runner.jobs(limit, before_ms)]

    def one(self, simulation_id: str) -> Simulation:
        return self._simulation(self._runner.job(simulation_id))

    def log(self, simulation_id: str) -> str:
        return self._runner.log(simulation_id)

    def cancel(self, simulation_id: str) -> Simulation:
        return self._simulation(self._runner.cancel(simulation_id))

    def outcome(self, simulation_id: str) -> Outcome:
        return read_outcome(self.outcome_json(simulation_id), f"the result of simulation {simulation_id}")

    def outcome_json(self, simulation_id: str) -> bytes:
        """Return the outcome as JSON; raise NotFound if there is none, or none yet."""
        return self._runner.outcome(simulation_id)

    def close(self) -> None:
        self._runner.close()

    def _simulation(self, job: Job) -> Simulation:
        return Simulation(job, SimulationAsked.model_validate(job.config), self._runner.progress(job.id))
