"""The world that policies are simulated in where nobody names another: the one of the built-in suite of tips."""

from pathlib import Path

from tipbench.bench.suites.load import built_in_suites
from tipbench.recommender.simulation.world import World, load_world

NAME = "world.yaml"


def built_in_world() -> World:
    return load_world(world_file())


def open_world(path: Path | None) -> World:
    """The world in this file; without one, the built-in world."""
    return load_world(path) if path else built_in_world()


def world_file() -> Path:
    return built_in_suites()["tip"] / NAME
