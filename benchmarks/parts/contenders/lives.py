"""What every simulator does in its turn: one life, and the time that it took.

It reads a line from its standard input and answers with one, so that simulators can take turns.
"""

import json
import sys
import time
from collections.abc import Callable

ACTIONS = 10
DIMENSIONS = 12
STEPS = 300


def live_in_turns(live: Callable[[str, int], None]) -> None:
    for seed, _ in enumerate(sys.stdin):
        started = time.perf_counter()
        live(sys.argv[1], seed)
        print(json.dumps({"seconds": time.perf_counter() - started}), flush=True)
