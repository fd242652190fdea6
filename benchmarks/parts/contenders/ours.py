"""tipbench: from features that are there already, as a simulation has them, and from a request, as serving does it."""

from collections.abc import Mapping
from itertools import count

import numpy as np

from benchmarks.parts.contenders.turns import Step, Task, take_turns
from tipbench.recommender.features.interface import Features, Floats
from tipbench.recommender.features.v2 import V2
from tipbench.recommender.policies.choosing import EventRng
from tipbench.recommender.policies.egreedy import EGreedy
from tipbench.recommender.policies.interface import Generator, Policy
from tipbench.recommender.policies.linucb import LinUcb
from tipbench.recommender.policies.ridge import Ridge
from tipbench.recommender.records import Request


class Ready(Features):
    """Features that are there already."""

    def matrix(self, request: Request) -> Floats:
        made: Floats = prepared[request.event_id]
        return made


prepared: dict[str, Floats] = {}
READY = Ready(V2.version, V2.names, V2.rows)
POLICIES: Mapping[str, Policy[Ridge]] = {
    "egreedy": EGreedy("egreedy/v2", READY),
    "linucb": LinUcb("linucb", READY),
    "egreedy-from-request": EGreedy("egreedy/v2", V2),
}


def requests_of(task: Task) -> list[Request]:
    return [Request.model_validate_json(line) for line in task.requests.read_text().splitlines()]


def made(name: str, task: Task) -> Step:
    policy = POLICIES[name]
    requests = requests_of(task)
    prepared.update(zip((request.event_id for request in requests), task.features, strict=True))
    state = policy.new_state()
    fixed = np.random.Generator(np.random.PCG64(7))
    events = count()

    def generator(request: Request) -> Generator:
        if policy.features is READY:
            return fixed
        return EventRng(policy.name, request.user_id, f"{request.event_id}-{next(events)}")

    def step(number: int) -> int:
        request = requests[number]
        choice = policy.choose(state, request, generator(request), 0)
        policy.learn(state, choice.seen, task.rewards[number][choice.position], 0)
        return choice.position

    return step


if __name__ == "__main__":
    take_turns(made)
