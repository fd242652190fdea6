"""Run an experiment: every arm serves every persona with every seed, on several cores."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np

from tipbench.recommender.features.interface import Floats
from tipbench.recommender.simulation.process_map import process_map
from tipbench.recommender.simulation.rollout import Arm, InProcess, Server, Trajectory, roll_out
from tipbench.recommender.simulation.simulated_prior import with_simulated_prior
from tipbench.recommender.simulation.user_model import draw_life
from tipbench.recommender.simulation.world import Persona, World

METRICS = ("reward", "completed", "dismissed", "regret")
_MAX_BINS = 30
_STAGES_AFTER = (10, 30, 100)  # decisions: a user's first week, their first month, and so on

OpenServer = Callable[[Arm], Server]


@dataclass(frozen=True)
class Plan:
    world: World
    arms: tuple[Arm, ...]
    seeds: range
    steps: int
    offered: int

    @property
    def bins(self) -> int:
        """Number of points in a curve over time."""
        return min(_MAX_BINS, self.steps)

    @property
    def stages(self) -> tuple[range, ...]:
        """Decisions, counted from 0, of the stages of a life: its first 10, the next 20, the next 70, and the rest."""
        starts = [0, *(after for after in _STAGES_AFTER if after < self.steps)]
        return tuple(map(range, starts, [*starts[1:], self.steps]))

    @property
    def lives(self) -> int:
        """Number of simulated lives: one per persona and seed."""
        return len(self.world.personas) * len(self.seeds)

    @property
    def decisions(self) -> int:
        return len(self.arms) * self.lives * self.steps


class Unit(NamedTuple):
    """One life, served by all arms."""

    persona: int
    seed: int


@dataclass(frozen=True)
class Results:
    """Metrics summed over the steps of each bin, and then of each stage; the last of the axes, which are arm, persona,
    seed and metric before that."""

    plan: Plan
    sums: Floats

    def means(self, arm: str, metric: str = "reward") -> Floats:
        """Return the metric per step, by persona and seed."""
        found: Floats = (
            self.sums[self._arm(arm), :, :, METRICS.index(metric), : self.plan.bins].sum(axis=-1) / self.plan.steps
        )
        return found

    def curves(self, arm: str, metric: str) -> Floats:
        """Return the metric per step, by persona, seed and bin."""
        found: Floats = self.sums[self._arm(arm), :, :, METRICS.index(metric), : self.plan.bins]
        return found / bin_sizes(self.plan)

    def stages(self, arm: str, metric: str = "reward") -> Floats:
        """Return the metric per step, by persona, seed and stage of the life (`Plan.stages`)."""
        found: Floats = self.sums[self._arm(arm), :, :, METRICS.index(metric), self.plan.bins :]
        return found / [len(stage) for stage in self.plan.stages]

    def _arm(self, name: str) -> int:
        return [arm.name for arm in self.plan.arms].index(name)


def simulate(
    plan: Plan, workers: int, progress: Callable[[int], None], open_server: OpenServer | None = None
) -> Results:
    """Run a plan, calling `progress` with the number of lives done. Results don't depend on the number of workers."""
    fitted = replace(plan, arms=tuple(with_simulated_prior(arm, plan.world) for arm in plan.arms))
    units = [Unit(*unit) for unit in product(range(len(plan.world.personas)), plan.seeds)]
    points = plan.bins + len(plan.stages)
    sums = np.zeros((len(plan.arms), len(plan.world.personas), len(plan.seeds), len(METRICS), points))
    for done, (unit, found) in enumerate(_run_units(fitted, units, workers, open_server or _in_process), 1):
        sums[:, unit.persona, plan.seeds.index(unit.seed)] = found
        progress(done)
    return Results(plan, sums)


def _run_units(
    plan: Plan, units: Sequence[Unit], workers: int, open_server: OpenServer
) -> Iterator[tuple[Unit, Floats]]:
    run_unit = partial(_run_unit, plan, open_server=open_server)
    if workers == 1:
        return zip(units, map(run_unit, units), strict=True)
    return process_map(run_unit, units, workers)


def _in_process(arm: Arm) -> Server:
    return InProcess(arm.policy)


def _run_unit(plan: Plan, unit: Unit, open_server: OpenServer) -> Floats:
    persona: Persona = plan.world.personas[unit.persona]
    draws = draw_life(plan.world, persona, unit.seed, plan.steps, plan.offered)
    trajectories = (roll_out(plan.world, persona, unit.seed, draws, arm, open_server(arm)) for arm in plan.arms)
    return np.array([sum_bins(_values(trajectory), plan) for trajectory in trajectories])


def _values(trajectory: Trajectory) -> Floats:
    """Return the metrics of each step."""
    return np.array([trajectory.rewards, trajectory.completed, trajectory.dismissed, trajectory.regrets])


def sum_bins(values: Floats, plan: Plan) -> Floats:
    """Sum the metrics of each step over bins, and then over stages."""
    starts = (_bin_starts(plan), [stage.start for stage in plan.stages])
    return np.concatenate([np.add.reduceat(values, parts, axis=1) for parts in starts], axis=1)


def bin_sizes(plan: Plan) -> Floats:
    return np.diff([*_bin_starts(plan), plan.steps]).astype(np.float64)


def _bin_starts(plan: Plan) -> list[int]:
    return [plan.steps * number // plan.bins for number in range(plan.bins)]
