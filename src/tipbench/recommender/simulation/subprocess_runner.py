"""Starts a simulation in a process of its own: own process group, own folder, a time limit, and nothing left behind."""

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
from tipbench.recommender.simulation.experiment import Plan
from tipbench.recommender.simulation.gate import FIRST_SEED, USUAL, gate_arms
from tipbench.recommender.simulation.rollout import Arm, arm
from tipbench.recommender.simulation.world import World
from tipbench.statistics.paired import FEWEST

_MOST_DECISIONS = 10**8  # hours
_MOST_POINTS = 2 * 10**7  # of all curves: 640 MB of sums
_MOST_DRAWN = 10**7  # numbers that decide what is offered in one life
PREFIX = "tipbench-sim-"
_TAIL = 2000
_CHILD = tuple(module_command("tipbench.recommender.simulation.worker_main"))
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}  # there is a process a core already
_TRIES = 50
_BETWEEN_TRIES_S = 0.02


# What a simulation is asked to do, as data that crosses from one process to the other.


class SimulationRequest(BaseModel):
    """`kind` gate: the arms are candidate and incumbent, and what the gate needs besides is added."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["run", "gate"] = "run"
    world: World
    arms: Annotated[tuple[str, ...], Field(min_length=1, max_length=20)]
    first_seed: Annotated[int, Field(ge=0, le=10**9)] = FIRST_SEED
    seeds: Annotated[int, Field(ge=1, le=100_000)] = USUAL.seeds
    steps: Annotated[int, Field(ge=1, le=100_000)] = USUAL.steps
    offered: Annotated[int, Field(ge=1, le=200)] = USUAL.offered
    http: bool = False

    def plan(self) -> Plan:
        """Raises InvalidInput for what does not fit together."""
        arms = tuple(arm(name) for name in self.arms)
        if self.kind == "gate":
            arms = self._gate_arms(arms)
        if len(set(self.arms)) < len(self.arms):
            raise InvalidInput(f"each policy is simulated once; given: {', '.join(self.arms)}")
        seeds = range(self.first_seed, self.first_seed + self.seeds)
        plan = Plan(self.world, arms, seeds, self.steps, self.offered)
        self._check_size(plan)
        return plan

    def _gate_arms(self, arms: tuple[Arm, ...]) -> tuple[Arm, ...]:
        if len(arms) != 2:
            raise InvalidInput("a gate has one candidate and one incumbent")
        if arms[0] == arms[1]:
            raise InvalidInput(f"{self.arms[0]} is candidate and incumbent; name two policies")
        if self.seeds < FEWEST:
            raise InvalidInput(f"{self.seeds} seeds are too few for a gate; take {FEWEST} or more, 30 are usual")
        return gate_arms(*arms)

    def _check_size(self, plan: Plan) -> None:
        tips = self.world.tips
        if self.offered > tips:
            raise InvalidInput(f"{self.offered} candidates can't be offered from a pool of {tips} tips; offer fewer")
        if self.steps * tips > _MOST_DRAWN:
            raise InvalidInput(
                f"{self.steps:,} steps with a pool of {tips:,} tips take too much memory; the product may be "
                f"{_MOST_DRAWN:,}: take fewer steps, or a smaller pool"
            )
        if plan.decisions > _MOST_DECISIONS:
            raise InvalidInput(
                f"{plan.decisions:,} decisions are too many for one simulation, {_MOST_DECISIONS:,} are the most; take "
                "fewer seeds, steps, policies or personas"
            )
        points = len(plan.arms) * plan.lives * plan.bins
        if points > _MOST_POINTS:
            raise InvalidInput(
                f"{plan.lives:,} lives take too much memory ({len(plan.arms)} policies serve each); take fewer seeds, "
                "policies or personas"
            )


def simulate_in_subprocess(
    request: SimulationRequest, workers: int, timeout_s: float, progress: Callable[[int, int], None]
) -> dict[str, Any]:
    """The result as data. Raises InvalidInput for a request that can't be carried out, before anything is started."""
    request.plan()
    folder = Path(tempfile.gettempdir()) / f"{PREFIX}{secrets.token_hex(8)}"  # the child makes it, once it is watched
    asked = to_json({"request": request.model_dump(mode="json"), "workers": workers, "folder": str(folder)})
    try:
        with tempfile.TemporaryFile() as log:
            return _run(_CHILD, asked, timeout_s, progress, log)
    finally:
        _remove(folder)


def _run(
    command: tuple[str, ...], asked: bytes, timeout_s: float, progress: Callable[[int, int], None], log: BinaryIO
) -> dict[str, Any]:
    settings = Settings()
    environment = {**settings.for_a_job(settings.home), **_ONE_THREAD}
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
            _ask(process.stdin, asked)
            for line in process.stdout:
                if not line.endswith(b"\n"):
                    break  # it was killed in the middle of it
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
    raise SimulationFailed(f"the simulation ended without a result: {_why(process.returncode, log)}")


def _ask(child: IO[bytes], asked: bytes) -> None:
    """One that has ended is not asked, and its log says why; what is left of the question must not be tried again."""
    try:
        child.write(asked + b"\n")
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


def _why(status: int, log: BinaryIO) -> str:
    if status < 0:
        return f"signal {-status} ended it"
    log.seek(0)
    said = printable(log.read()[-_TAIL:].decode(errors="replace")).strip()
    return said or f"its exit status is {status}"


def _remove(folder: Path) -> None:
    """Those who write into it have been killed; some may take a moment to go."""
    for _ in range(_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_BETWEEN_TRIES_S)
