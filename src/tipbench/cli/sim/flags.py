"""The flags that all simulations share, and the request made from them."""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import click

from tipbench.cli.flags import progress_flag
from tipbench.core.errors import InvalidInput
from tipbench.core.settings import Settings
from tipbench.recommender.simulation.gate import FIRST_SEED
from tipbench.recommender.simulation.subprocess_runner import SimulationRequest
from tipbench.recommender.simulation.world import World
from tipbench.recommender.store.moving import read_priors
from tipbench.server.jobs.simulation_asked import open_world

_Command = TypeVar("_Command", bound=Callable[..., Any])
_MAX_WORKERS = 256
_DAY_S = 86_400.0
_FILE = click.Path(path_type=Path, dir_okay=False)
_DEFAULTS = {name: field.default for name, field in SimulationRequest.model_fields.items()}


class _Seconds(click.FloatRange):
    """A number of seconds; rejects NaN, which passes every range check."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found: float = super().convert(value, param, ctx)
        return self.fail(f"{value} is not a number of seconds.", param, ctx) if math.isnan(found) else found


@dataclass(frozen=True)
class Flags:
    seeds: int
    first_seed: int
    steps: int
    offered: int
    world: Path | None
    http: bool
    workers: int | None
    timeout: float
    form: str
    out: Path | None
    progress: Path | None

    def open_world(self) -> World:
        return open_world(self.world)

    def request(self, kind: Literal["run", "gate"], world: World, policies: tuple[str, ...]) -> SimulationRequest:
        return SimulationRequest(
            kind=kind,
            world=world,
            arms=policies,
            first_seed=self.first_seed,
            seeds=self.seeds,
            steps=self.steps,
            offered=self.offered,
            http=self.http,
            priors=read_priors(policies, Settings()),
        )

    def changed(self) -> tuple[str, ...]:
        """Return the flags that results depend on and that are not at their defaults, except for --seeds."""
        given = {"first_seed": self.first_seed, "steps": self.steps, "offered": self.offered}
        numbers = [(f"--{name.replace('_', '-')}", str(n)) for name, n in given.items() if n != _DEFAULTS[name]]
        world = [("--world", str(self.world))] if self.world else []
        return tuple(word for pair in [*numbers, *world] for word in pair)

    def processes(self, lives: int) -> int:
        """Return the number of worker processes: by default one per usable core, never more than there are lives."""
        return min(self.workers or len(os.sched_getaffinity(0)), lives)


def simulation_flags(command: _Command) -> _Command:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def split_names(text: str, flag: str) -> tuple[str, ...]:
    found = tuple(name.strip() for name in text.split(",") if name.strip())
    if not found:
        raise InvalidInput(f"{flag} names nothing; give names, comma-separated")
    return found


_OPTIONS = (
    click.option(
        "--seeds",
        type=click.IntRange(1, 100_000),
        default=_DEFAULTS["seeds"],
        show_default=True,
        help="Simulated lives per persona.",
    ),
    click.option(
        "--first-seed",
        type=click.IntRange(0, 10**9),
        default=_DEFAULTS["first_seed"],
        show_default=True,
        help=f"The first seed; others are other lives. Seeds below {FIRST_SEED} set the gate's thresholds.",
    ),
    click.option(
        "--steps",
        type=click.IntRange(1, 100_000),
        default=_DEFAULTS["steps"],
        show_default=True,
        help="Decisions per life.",
    ),
    click.option(
        "--offered",
        type=click.IntRange(1, 200),
        default=_DEFAULTS["offered"],
        show_default=True,
        help="Tips to choose from in each decision.",
    ),
    click.option(
        "--world", type=_FILE, metavar="FILE", help="File with personas and tips.  [default: those of the suite 'tip']"
    ),
    click.option(
        "--http",
        is_flag=True,
        help="Go through the real service over HTTP: slower, with the same results. Policies of version 3 run in "
        "process all the same, because they go by the time and the service has its own clock.",
    ),
    click.option("--workers", type=click.IntRange(1, _MAX_WORKERS), metavar="N", help="[default: all cores]"),
    click.option(
        "--timeout",
        type=_Seconds(0, _DAY_S, min_open=True),
        default=1800.0,
        show_default=True,
        metavar="S",
        help="Time limit in seconds.",
    ),
    click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True),
    click.option("--out", type=_FILE, metavar="FILE", help="Also write the JSON to this file."),
    progress_flag,
)
