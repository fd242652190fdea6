"""The simulation's own process: a request comes in, lines of progress go out, and the result in the end.

Whoever started it holds its input open. When that closes, the starter is gone, and this one ends its workers and its
service, removes its folder, and ends. Where both are killed at once, the folder is all that is left behind.
"""

import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from tipbench.core.errors import InvalidInput, TipbenchError
from tipbench.core.processes import kill_descendants, when_parent_ends
from tipbench.recommender.simulation.experiment import Results, simulate
from tipbench.recommender.simulation.gate import as_data, judged
from tipbench.recommender.simulation.outcome import outcome_data
from tipbench.recommender.simulation.over_http import service
from tipbench.recommender.simulation.subprocess_runner import SimulationRequest


def main() -> None:
    asked = sys.stdin.buffer.readline()
    if not asked.endswith(b"\n"):
        return  # the starter was gone before it had asked
    data = from_json(asked)
    folder = Path(data["folder"])
    when_parent_ends(lambda: _end(folder))
    try:
        folder.mkdir(mode=0o700)
        request = SimulationRequest.model_validate(data["request"])
        _say({"result": result_of(request, data["workers"], folder)})
    except InvalidInput as error:
        _say({"refused": str(error)})
    except TipbenchError as error:
        _say({"failed": str(error)})
    except OSError as error:  # a full disk, a folder that somebody removed
        where = error.filename or folder
        _say({"failed": f"the simulation can't go on: {error.strerror or error}: {where}; see to it, and start again"})
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def result_of(request: SimulationRequest, workers: int, folder: Path) -> dict[str, Any]:
    results = _simulated(request, workers, folder)
    found = outcome_data(results)
    return found | {"gate": as_data(judged(results))} if request.kind == "gate" else found


def _simulated(request: SimulationRequest, workers: int, folder: Path) -> Results:
    plan = request.plan()

    def progress(done: int) -> None:
        _say({"done": done, "of": plan.lives})

    if not request.http:
        return simulate(plan, workers, progress)
    with service(folder) as at:
        return simulate(plan, workers, progress, at)


def _say(entry: dict[str, Any]) -> None:
    sys.stdout.buffer.write(to_json(entry, inf_nan_mode="null") + b"\n")
    sys.stdout.buffer.flush()


def _end(folder: Path) -> None:
    kill_descendants(os.getpid(), wait_s=5.0)
    shutil.rmtree(folder, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
