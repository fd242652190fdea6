"""The service over HTTP serves the simulated users: all that a real app goes through, and the same results."""

import re
import secrets
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import httpx
from pydantic_core import to_json

from tipbench.core.die_with_parent import tied_to_parent
from tipbench.core.errors import SimulationFailed
from tipbench.core.settings import Settings
from tipbench.recommender.policies.catalog import SERVED
from tipbench.recommender.records import Request
from tipbench.recommender.simulation.rollout import Arm, InProcess, Server

_PATIENCE_S = 60.0
_LOOK_EVERY_S = 0.05
_ADDRESS = re.compile(r"at (http://\S+)")


class OverHttp:
    """One arm's requests."""

    def __init__(self, client: httpx.Client, policy: str) -> None:
        self._client = client
        self._policy = policy

    def choose(self, request: Request) -> int:
        answer = self._post("score", request.model_dump_json().encode())
        return [candidate.id for candidate in request.candidates].index(answer["chosen"])

    def learn(self, request: Request, reward: float) -> None:
        body = request.model_dump(mode="json", include={"user_id", "event_id", "profile_features"}) | {"reward": reward}
        self._post("reward", to_json(body))

    def _post(self, verb: str, content: bytes) -> dict[str, str]:
        try:
            answer = self._client.post(f"/{verb}/{self._policy}", content=content)
        except httpx.HTTPError as error:
            raise SimulationFailed(f"the simulation's service does not answer: {error}") from error
        if answer.status_code != 200:
            raise SimulationFailed(f"the simulation's service answered {answer.status_code}: {answer.text[:300]}")
        found: dict[str, str] = answer.json()
        return found


@dataclass(frozen=True)
class Service:
    """Where it is. Goes to every worker, which makes a connection of its own."""

    url: str
    key: str

    def __call__(self, arm: Arm) -> Server:
        """What the service does not know, as a placebo, is asked in process: the results are the same."""
        if not is_served(arm):
            return InProcess(arm.policy)
        return OverHttp(_client(self.url, self.key), arm.policy.name)


def is_served(arm: Arm) -> bool:
    return SERVED.get(arm.policy.name) == arm.policy


@lru_cache
def _client(url: str, key: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    return httpx.Client(base_url=url, headers=headers, timeout=_PATIENCE_S, trust_env=False)


@contextmanager
def service(folder: Path) -> Iterator[Service]:
    """The real command, with its states in this folder; it ends with the block."""
    key = secrets.token_urlsafe(32)
    own = {"TIPBENCH_SERVING_KEY": key, "TIPBENCH_STATE": "files", "TIPBENCH_SHADOWS": "", "TIPBENCH_REWARD_WINDOW": ""}
    log = folder / "service.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            tied_to_parent("recommend", "serve", "--port", "0"),
            env={**Settings().for_a_job(folder), **own},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
    try:
        yield Service(_address(process, log), key)
    finally:
        process.terminate()
        process.wait(_PATIENCE_S)


def _address(process: "subprocess.Popen[bytes]", log: Path) -> str:
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        ended = process.poll() is not None
        said = log.read_text(encoding="utf-8", errors="replace")
        found = _ADDRESS.search(said)
        if found:
            return found[1]
        if ended:
            why = said.strip()[-500:] or f"it ended with status {process.returncode} and said nothing"
            raise SimulationFailed(f"the simulation's service did not start: {why}")
        time.sleep(_LOOK_EVERY_S)
    raise SimulationFailed(f"the simulation's service did not start within {_PATIENCE_S:.0f} s")
