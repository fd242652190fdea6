"""Nobody else's model is in a host's memory before ours is loaded.

A pool's slot is free as soon as Airflow writes a task off, and the worker of that task learns it with its next
heartbeat, seconds later; on another machine no lock of ours tells. So the host itself is asked.
"""

import time
from collections.abc import Callable, Collection

from tipbench.bench.engines.interface import Engine, bare_name
from tipbench.bench.engines.ollama import same_model
from tipbench.core.errors import EngineError

_PATIENCE_S = 60.0
_OURS_S = 20.0  # after that, what is left of our own models has no worker any more
_QUIET_S = 1.0  # a model that leaves after every call is away for moments only
_EVERY_S = 0.1


def wait_until_vacant(
    engine: Engine,
    model: str,
    say: Callable[[str], None],
    ours: Collection[str] = (),
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Returns once no other model has been in memory for a moment. Raises EngineError when one stays.

    `ours`: models that only this run uses on this host; of these, what a lost worker left loaded is unloaded.
    """
    own = bare_name(model, engine.name)
    begun = quiet_since = clock()
    others: list[str] = []
    while clock() - quiet_since < _QUIET_S:
        found = [held.name for held in engine.resident() if not same_model(held.name, own)]
        if found:
            if not others:
                say(f"{', '.join(found)} is in memory at {engine.address}; waiting until it has left …")
            others, quiet_since = found, clock()
        if clock() - begun > _OURS_S:
            for left in [name for name in found if any(same_model(name, one) for one in ours)]:
                say(f"{left} was left in memory at {engine.address} by a worker that is gone; unloading it.")
                engine.unload(left)
        if others and clock() - begun > _PATIENCE_S:
            raise EngineError(
                f"{', '.join(others)} stays in memory at {engine.address}, and {model} is not loaded beside it; "
                f"unload it ('ollama stop {others[0]}'), or keep others away from this host, and clear this task"
            )
        sleep(_EVERY_S)
