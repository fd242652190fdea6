"""What a contender does that serves users of our simulator from an environment of its own.

It reads a line from its standard input for each thing to do and answers with a line: what it chose, and the time that
it took, without the way between the two processes.
"""

import json
import sys
import time
from typing import NamedTuple, Protocol


class Offered(NamedTuple):
    """What can be chosen from; one value per candidate, except for the context."""

    features: list[list[float]]
    categories: list[int]
    tips: list[int]
    context: list[float]  # of the moment: 1, the hour as a point on a circle, and the focus, one of all categories


class Learner(Protocol):
    def begin(self) -> None:
        """Serve another user from now on."""

    def choose(self, event: str, offered: Offered) -> int: ...

    def learn(self, event: str, reward: float) -> None: ...

    def keep(self) -> None:
        """Let all further users begin with what is known now."""


def answer(learner: Learner) -> None:
    """The body of a contender's process."""
    for line in sys.stdin:
        verb, *given = json.loads(line)
        position = 0
        started = time.perf_counter()
        if verb == "choose":
            event, offered = given[0], Offered(*given[1])
            started = time.perf_counter()
            position = learner.choose(event, offered)
        elif verb == "learn":
            learner.learn(*given)
        elif verb == "begin":
            learner.begin()
        else:
            learner.keep()
        print(json.dumps([position, (time.perf_counter() - started) * 1e6]), flush=True)
