"""Run a simulation in a subprocess with its own process group and folder and a timeout, and clean up after it."""

import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Annotated, Any, BinaryIO, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import from_json, to_json

from tipbench.core.errors import InvalidInput, SimulationFailed
from tipbench.core.processes import module_command, signal_group, start_process
from tipbench.core.settings import Settings
from tipbench.core.untrusted import printable
from tipbench.recommender.prior.interface import PriorRecord
from tipbench.recommender.simulation.experiment import Plan
from tipbench.recommender.simulation.gate import DEFAULT_SIZE, FIRST_SEED, Lineup, lineup_of
from tipbench.recommender.simulation.rollout import Arm, arm
from tipbench.recommender.simulation.world import World
from tipbench.statistics.paired import FEWEST

_MAX_DECISIONS = 10**8  # takes hours
_MAX_POINTS = 2 * 10**7  # in all curves: 640 MB of sums
_MAX_DRAWN = 10**7  # random numbers that decide what is offered in one life
PREFIX = "tipbench-sim-"
_LOG_TAIL_CHARS = 2000
_CHILD = tuple(module_command("tipbench.recommender.simulation.worker_main"))
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}  # there is already one process per core
_REMOVE_ATTEMPTS = 50
_RETRY_INTERVAL_S = 0.02


# The request, as it is sent to the subprocess.


class SimulationRequest(BaseModel):
    """A simulation to run. With the kind `gate`, the arms are candidate and incumbent; its control arms are added."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["run", "gate"] = "run"
    world: World
    arms: Annotated[tuple[str, ...], Field(min_length=1, max_length=20)]
    first_seed: Annotated[int, Field(ge=0, le=10**9)] = FIRST_SEED
    seeds: Annotated[int, Field(ge=1, le=100_000)] = DEFAULT_SIZE.seeds
    steps: Annotated[int, Field(ge=1, le=100_000)] = DEFAULT_SIZE.steps
    offered: Annotated[int, Field(ge=1, le=200)] = DEFAULT_SIZE.offered
    http: bool = False
    priors: Mapping[str, PriorRecord] = {}  # by digest, for arms such as ucb/v3@DIGEST

    def plan(self) -> Plan:
        """Return the plan; raise InvalidInput for a request that is inconsistent or too large."""
        if len(set(self.arms)) < len(self.arms) and self.kind == "run":
            raise InvalidInput(f"name each policy once; given: {', '.join(self.arms)}")
        arms = self.lineup().arms if self.kind == "gate" else self._named_arms()
        seeds = range(self.first_seed, self.first_seed + self.seeds)
        plan = Plan(self.world, arms, seeds, self.steps, self.offered)
        self._check_size(plan)
        return plan

    def _named_arms(self) -> tuple[Arm, ...]:
        read_prior = self.priors.__getitem__ if self.priors else None
        return tuple(arm(name, read_prior, self.world) for name in self.arms)

    def lineup(self) -> Lineup:
        """Return the arms of a gate; raise InvalidInput if the request is not one for a gate."""
        arms = self._named_arms()
        if len(arms) != 2:
            raise InvalidInput("a gate needs one candidate and one incumbent")
        if arms[0] == arms[1]:
            raise InvalidInput(f"{self.arms[0]} is both candidate and incumbent; name two policies")
        if self.seeds < FEWEST:
            raise InvalidInput(f"{self.seeds} seeds are too few for a gate; use {FEWEST} or more, 30 are usual")
        return lineup_of(*arms, self.world)

    def _check_size(self, plan: Plan) -> None:
        tips = self.world.tips
        if self.offered > tips:
            raise InvalidInput(f"{self.offered} candidates can't be offered from a pool of {tips} tips; offer fewer")
        if self.steps * tips > _MAX_DRAWN:
            raise InvalidInput(
                f"{self.steps:,} steps with a pool of {tips:,} tips take too much memory; their product may be at "
                f"most {_MAX_DRAWN:,}: use fewer steps or a smaller pool"
            )
        if plan.decisions > _MAX_DECISIONS:
            raise InvalidInput(
                f"{plan.decisions:,} decisions are too many for one simulation, {_MAX_DECISIONS:,} is the limit; use "
                "fewer seeds, steps, policies or personas"
            )
        points = len(plan.arms) * plan.lives * (plan.bins + len(plan.stages))
        if points > _MAX_POINTS:
            raise InvalidInput(
                f"{plan.lives:,} lives take too much memory ({len(plan.arms)} policies serve each); use fewer seeds, "
                "policies or personas"
            )


def simulate_in_subprocess(
    request: SimulationRequest, workers: int, timeout_s: float, progress: Callable[[int, int], None]
) -> dict[str, Any]:
    """Run a simulation and return its result as plain data, calling `progress` with the lives done and their total.

    Raises InvalidInput for an invalid request before anything is started, SimulationFailed on a failure or timeout.
    """
    request.plan()
    folder = (
        Path(tempfile.gettempdir()) / f"{PREFIX}{secrets.token_hex(8)}"
    )  # created by the child, once it watches its parent
    message = to_json(
        {"request": request.model_dump(mode="json", by_alias=True), "workers": workers, "folder": str(folder)}
    )
    try:
        with tempfile.TemporaryFile() as log:
            return _run(_CHILD, message, timeout_s, progress, log)
    finally:
        _remove(folder)


def _run(
    command: tuple[str, ...], message: bytes, timeout_s: float, progress: Callable[[int, int], None], log: BinaryIO
) -> dict[str, Any]:
    settings = Settings()
    environment = {**settings.job_environment(settings.home), **_ONE_THREAD}
    pipe = subprocess.PIPE
    with start_process(command, stdin=pipe, stdout=pipe, stderr=log, environment=environment) as process:
        timed_out = threading.Event()

        def end() -> None:
            timed_out.set()
            signal_group(process.pid, signal.SIGKILL)

        timer = threading.Timer(timeout_s, end)
        timer.daemon = True
        timer.start()
        try:
            assert process.stdin
            assert process.stdout
            _send_request(process.stdin, message)
            for line in process.stdout:
                if not line.endswith(b"\n"):
                    break  # it was killed while writing the line
                entry = from_json(line)
                if "done" not in entry:
                    return _result(entry)
                progress(entry["done"], entry["of"])
        finally:
            timer.cancel()
            signal_group(process.pid, signal.SIGKILL)
    if timed_out.is_set():
        raise SimulationFailed(
            f"the simulation took more than {timeout_s:g} s; give it more with --timeout, or fewer seeds"
        )
    raise SimulationFailed(f"the simulation ended without a result: {_exit_reason(process.returncode, log)}")


def _send_request(child: IO[bytes], message: bytes) -> None:
    """Send the request. If the child has already exited, its log says why; close the pipe, so that the unsent rest is
    not flushed again later."""
    try:
        child.write(message + b"\n")
        child.flush()
    except BrokenPipeError:
        with suppress(BrokenPipeError):
            child.close()


def _result(entry: Mapping[str, Any]) -> dict[str, Any]:
    if "refused" in entry:
        raise InvalidInput(entry["refused"])
    if "failed" in entry:
        raise SimulationFailed(entry["failed"])
    result: dict[str, Any] = entry["result"]
    return result


def _exit_reason(status: int, log: BinaryIO) -> str:
    if status < 0:
        return f"signal {-status} ended it"
    log.seek(0)
    output = printable(log.read()[-_LOG_TAIL_CHARS:].decode(errors="replace")).strip()
    return output or f"its exit status is {status}"


def _remove(folder: Path) -> None:
    """Remove a folder, retrying: its writers have been killed, but may take a moment to exit."""
    for _ in range(_REMOVE_ATTEMPTS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_RETRY_INTERVAL_S)
