"""What a simulation is asked for, as it is sent, stored and shown. It is always of the built-in world."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tipbench.bench.options import Options
from tipbench.bench.suites.load import built_in_suites
from tipbench.bench.tracking.embedded import SCHEME
from tipbench.core.errors import Problems
from tipbench.core.untrusted import without_credentials
from tipbench.recommender.simulation.subprocess_runner import SimulationRequest
from tipbench.recommender.simulation.world import World, load_world

NAME = "world.yaml"
_Policy = Annotated[str, Field(min_length=1, max_length=80)]
_USUAL = SimulationRequest.model_fields
_INSTEAD = {
    "ollama_url": "leave them out; an Ollama that asks for them can't be used by a job",
    "mlflow_url": "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD where the server is started",
}


# The world that policies are simulated in where nobody names another: the one of the built-in suite of tips.


def built_in_world() -> World:
    return load_world(world_file())


def open_world(path: Path | None) -> World:
    """The world in this file; without one, the built-in world."""
    return load_world(path) if path else built_in_world()


def world_file() -> Path:
    return built_in_suites()["tip"] / NAME


class SimulationAsked(BaseModel):
    """`run`: `policies` serve the simulated users. `gate`: has `candidate` won over `incumbent`?"""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: Literal["run", "gate"]
    policies: Annotated[list[_Policy] | None, Field(min_length=1, max_length=20, description="Of a run.")] = None
    candidate: Annotated[_Policy | None, Field(description="Of a gate.")] = None
    incumbent: Annotated[_Policy | None, Field(description="Of a gate; left out, it is the live policy.")] = None
    seeds: Annotated[int, Field(ge=1, le=100_000, description="Lives a persona.")] = _USUAL["seeds"].default
    first_seed: Annotated[int, Field(ge=0, le=10**9, description="Seeds count from here.")] = _USUAL[
        "first_seed"
    ].default
    steps: Annotated[int, Field(ge=1, le=100_000, description="Decisions in a life.")] = _USUAL["steps"].default
    offered: Annotated[int, Field(ge=1, le=200, description="Tips to choose from.")] = _USUAL["offered"].default

    @model_validator(mode="after")
    def _is_one_or_the_other(self) -> "SimulationAsked":
        if self.kind == "run" and (self.policies is None or self.candidate is not None or self.incumbent is not None):
            raise ValueError("a run names its policies, and neither a candidate nor an incumbent")
        if self.kind == "gate" and (self.candidate is None or self.policies is not None):
            raise ValueError("a gate names its candidate, and no policies")
        return self

    @property
    def arms(self) -> tuple[str, ...]:
        """Those that are named."""
        named = self.policies if self.kind == "run" else [self.candidate, self.incumbent]
        return tuple(name for name in named or () if name is not None)

    @property
    def title(self) -> str:
        return ", ".join(self.arms) if self.kind == "run" else " against ".join(self.arms)

    @property
    def words(self) -> tuple[str, ...]:
        """Of the command that carries it out."""
        numbers = ("seeds", "first_seed", "steps", "offered")
        given = [word for name in numbers for word in (f"--{name.replace('_', '-')}", str(getattr(self, name)))]
        if self.kind == "run":
            return ("sim", "run", f"--policies={','.join(self.arms)}", *given)
        return ("sim", "gate", f"--candidate={self.candidate}", f"--incumbent={self.incumbent}", *given)

    def check(self) -> None:
        """Raises InvalidInput for what does not fit together; of a gate, both policies have to be named by now."""
        SimulationRequest(
            kind=self.kind,
            world=built_in_world(),
            arms=self.arms,
            first_seed=self.first_seed,
            seeds=self.seeds,
            steps=self.steps,
            offered=self.offered,
        ).plan()


# Jobs are listed, shown and kept: nothing secret may be in what they are asked to do.


def refuse_credentials(options: Options) -> None:
    """All that is wrong at once. What stands behind a question mark is mostly a key, too."""
    problems = []
    for key, instead in _INSTEAD.items():
        url = getattr(options, key) or ""
        if url.startswith(SCHEME):
            continue
        if "@" in url:
            problems.append(f"{key}: holds a user name or password (for {without_credentials(url)}); {instead}")
        elif "?" in url or "#" in url:
            problems.append(f"{key}: holds more than an address; leave out what stands from the ? or # on")
    if problems:
        raise Problems("a job's addresses are shown to others:", problems)
