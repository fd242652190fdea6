"""Simulation requests, as they are sent, stored and shown. They always use the built-in world."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tipbench.bench.options import Options
from tipbench.bench.suites.load import built_in_suites
from tipbench.bench.tracking.embedded import SCHEME
from tipbench.core.errors import Problems
from tipbench.core.settings import Settings
from tipbench.core.untrusted import without_credentials
from tipbench.recommender.simulation.subprocess_runner import SimulationRequest
from tipbench.recommender.simulation.world import World, load_world
from tipbench.recommender.store.moving import read_priors

_WORLD_FILES = {2: "world.yaml", 3: "world-v3.yaml"}  # by version of the simulator
_NEWEST = 3
_Policy = Annotated[str, Field(min_length=1, max_length=80)]
_DEFAULTS = SimulationRequest.model_fields
_ADVICE = {
    "ollama_url": "leave them out; a job can't use an Ollama that requires them",
    "mlflow_url": "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD where the server is started",
}


# The default world for simulations: the one of the built-in suite `tip`.


def built_in_world(simulator: int = _NEWEST) -> World:
    return load_world(world_file(simulator))


def open_world(path: Path | None) -> World:
    """Load the world in this file; without a path, the built-in world."""
    return load_world(path) if path else built_in_world()


def world_file(simulator: int = _NEWEST) -> Path:
    return built_in_suites()["tip"] / _WORLD_FILES[simulator]


class SimulationAsked(BaseModel):
    """`run`: `policies` serve the simulated users. `gate`: has `candidate` won over `incumbent`?"""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: Literal["run", "gate"]
    policies: Annotated[list[_Policy] | None, Field(min_length=1, max_length=20, description="For a run.")] = None
    candidate: Annotated[_Policy | None, Field(description="For a gate.")] = None
    incumbent: Annotated[_Policy | None, Field(description="For a gate. Default: the live policy.")] = None
    seeds: Annotated[int, Field(ge=1, le=100_000, description="Simulated lives per persona.")] = _DEFAULTS[
        "seeds"
    ].default
    first_seed: Annotated[int, Field(ge=0, le=10**9, description="The first seed.")] = _DEFAULTS["first_seed"].default
    steps: Annotated[int, Field(ge=1, le=100_000, description="Decisions per life.")] = _DEFAULTS["steps"].default
    offered: Annotated[int, Field(ge=1, le=200, description="Tips to choose from.")] = _DEFAULTS["offered"].default

    @model_validator(mode="after")
    def _check_kind(self) -> "SimulationAsked":
        if self.kind == "run" and (self.policies is None or self.candidate is not None or self.incumbent is not None):
            raise ValueError("a run needs policies, not a candidate or an incumbent")
        if self.kind == "gate" and (self.candidate is None or self.policies is not None):
            raise ValueError("a gate needs a candidate, not policies")
        return self

    @property
    def arms(self) -> tuple[str, ...]:
        """Return the policies that the request names."""
        named = self.policies if self.kind == "run" else [self.candidate, self.incumbent]
        return tuple(name for name in named or () if name is not None)

    @property
    def title(self) -> str:
        return ", ".join(self.arms) if self.kind == "run" else " against ".join(self.arms)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the arguments for the `tipbench` command that runs it."""
        numbers = ("seeds", "first_seed", "steps", "offered")
        options = [word for name in numbers for word in (f"--{name.replace('_', '-')}", str(getattr(self, name)))]
        if self.kind == "run":
            return ("sim", "run", f"--policies={','.join(self.arms)}", *options)
        return ("sim", "gate", f"--candidate={self.candidate}", f"--incumbent={self.incumbent}", *options)

    def check(self) -> None:
        """Raise InvalidInput if the parameters are inconsistent; a gate must name both policies by now."""
        SimulationRequest(
            kind=self.kind,
            world=built_in_world(),
            arms=self.arms,
            first_seed=self.first_seed,
            seeds=self.seeds,
            steps=self.steps,
            offered=self.offered,
            priors=read_priors(self.arms, Settings()),
        ).plan()


# Jobs are listed, shown and stored, so their options must not hold secrets.


def refuse_credentials(options: Options) -> None:
    """Raise Problems, listing every one, if an address holds credentials. A query string usually holds a key, too."""
    problems = []
    for key, advice in _ADVICE.items():
        url = getattr(options, key) or ""
        if url.startswith(SCHEME):
            continue
        if "@" in url:
            problems.append(f"{key}: contains a user name or password (for {without_credentials(url)}); {advice}")
        elif "?" in url or "#" in url:
            problems.append(f"{key}: contains more than an address; leave out everything from the ? or # on")
    if problems:
        raise Problems("a job's addresses are visible to others:", problems)
