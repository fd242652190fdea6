"""Lives in tipbench's simulator: requests, features, profiles, rewards and regrets are made along the way."""

from benchmarks.parts.contenders.lives import ACTIONS, STEPS, live_in_turns
from tipbench.recommender.simulation.rollout import InProcess, arm, roll_out
from tipbench.recommender.simulation.user_model import draw_life
from tipbench.server.jobs.simulation_asked import built_in_world

WORLD = built_in_world(2)


def live(policy: str, seed: int) -> None:
    persona = WORLD.personas[seed % len(WORLD.personas)]
    who = arm(policy)
    roll_out(WORLD, persona, seed, draw_life(WORLD, persona, seed, STEPS, ACTIONS), who, InProcess(who.policy))


if __name__ == "__main__":
    live_in_turns(live)
