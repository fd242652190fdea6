"""Lives in tipbench's simulator: requests, features, profiles, rewards and regrets are made along the way."""

from benchmarks.parts.contenders.lives import ACTIONS, STEPS, live_in_turns
from tipbench.bandit.simulation.arms import arm
from tipbench.bandit.simulation.builtin import built_in_world
from tipbench.bandit.simulation.draws import drawn_life
from tipbench.bandit.simulation.play import InProcess, play

WORLD = built_in_world()


def live(policy: str, seed: int) -> None:
    persona = WORLD.personas[seed % len(WORLD.personas)]
    who = arm(policy)
    play(WORLD, persona, seed, drawn_life(WORLD, persona, seed, STEPS, ACTIONS), who, InProcess(who.policy))


if __name__ == "__main__":
    live_in_turns(live)
