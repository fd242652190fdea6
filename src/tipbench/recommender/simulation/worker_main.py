"""Main module of the simulation's subprocess: reads a request, writes lines of progress, and finally the result.

The parent holds its standard input open. When that closes, the parent is gone: this process then kills its workers and
its service, removes its folder, and exits. If both are killed at once, only the folder is left behind.
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
from tipbench.recommender.simulation.gate import as_data, judge
from tipbench.recommender.simulation.outcome import answer_data, outcome_data
from tipbench.recommender.simulation.over_http import service
from tipbench.recommender.simulation.subprocess_runner import SimulationRequest


def main() -> None:
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        return  # the parent exited before it had sent the request
    data = from_json(line)
    folder = Path(data["folder"])
    when_parent_ends(lambda: _clean_up_and_exit(folder))
    try:
        folder.mkdir(mode=0o700)
        request = SimulationRequest.model_validate(data["request"])
        _send({"result": run_request(request, data["workers"], folder)})
    except InvalidInput as error:
        _send({"refused": str(error)})
    except TipbenchError as error:
        _send({"failed": str(error)})
    except OSError as error:  # such as a full disk, or a removed folder
        where = error.filename or folder
        _send({"failed": f"the simulation failed: {error.strerror or error}: {where}; fix that and start it again"})
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_request(request: SimulationRequest, workers: int, folder: Path) -> dict[str, Any]:
    results = _simulate(request, workers, folder)
    found = outcome_data(results)
    if request.kind == "run":
        return found | {"answer": answer_data(results)}
    lineup = request.lineup()
    return found | {"gate": as_data(judge(results, lineup), results, lineup)}


def _simulate(request: SimulationRequest, workers: int, folder: Path) -> Results:
    plan = request.plan()

    def progress(done: int) -> None:
        _send({"done": done, "of": plan.lives})

    if not request.http:
        return simulate(plan, workers, progress)
    with service(folder) as open_server:
        return simulate(plan, workers, progress, open_server)


def _send(entry: dict[str, Any]) -> None:
    sys.stdout.buffer.write(to_json(entry, inf_nan_mode="null") + b"\n")
    sys.stdout.buffer.flush()


def _clean_up_and_exit(folder: Path) -> None:
    kill_descendants(os.getpid(), wait_s=5.0)
    shutil.rmtree(folder, ignore_errors=True)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
