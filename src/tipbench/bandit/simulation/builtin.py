"""The world that policies are simulated in where nobody names another: the one of the built-in suite of tips."""

from pathlib import Path

from tipbench.bandit.simulation.world import World, load_world
from tipbench.suites.load import built_in_suites

NAME = "world.yaml"


def built_in_world() -> World:
    return load_world(world_file())


def world_file() -> Path:
    return built_in_suites()["tip"] / NAME
