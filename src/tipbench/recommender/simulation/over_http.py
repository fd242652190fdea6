"""Simulate against the HTTP service, through everything that a real app uses; the results are the same."""

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

from tipbench.core.die_with_parent import die_with_parent_command
from tipbench.core.errors import SimulationFailed
from tipbench.core.settings import Settings
from tipbench.recommender.policies.catalog import SERVED, takes_prior
from tipbench.recommender.records import Request
from tipbench.recommender.simulation.rollout import Arm, InProcess, Server

_TIMEOUT_S = 60.0
_POLL_INTERVAL_S = 0.05
_ADDRESS = re.compile(r"at (http://\S+)")


class OverHttp:
    """Serves one arm by requests to the service."""

    def __init__(self, client: httpx.Client, policy: str) -> None:
        self._client = client
        self._policy = policy

    def choose(self, request: Request, at_ms: int) -> int:  # noqa: ARG002 - the service has its own clock
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
    """The address of the service. It is sent to every worker process, which opens its own connection."""

    url: str
    key: str

    def __call__(self, arm: Arm) -> Server:
        """Return a server for an arm. Arms that the service does not know, such as a placebo, run in process."""
        if not is_served(arm):
            return InProcess(arm.policy)
        return OverHttp(_client(self.url, self.key), arm.policy.name)


def is_served(arm: Arm) -> bool:
    """Return whether the service can serve an arm as a simulation does. Policies that forget go by its real clock."""
    return SERVED.get(arm.policy.name) == arm.policy and not takes_prior(arm.policy)


@lru_cache
def _client(url: str, key: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    return httpx.Client(base_url=url, headers=headers, timeout=_TIMEOUT_S, trust_env=False)


@contextmanager
def service(folder: Path) -> Iterator[Service]:
    """Run the real serve command with its states in this folder, until the block ends."""
    key = secrets.token_urlsafe(32)
    overrides = {
        "TIPBENCH_SERVING_KEY": key,
        "TIPBENCH_STATE": "files",
        "TIPBENCH_SHADOWS": "",
        "TIPBENCH_REWARD_WINDOW": "",
    }
    log = folder / "service.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            die_with_parent_command("recommend", "serve", "--port", "0"),
            env={**Settings().job_environment(folder), **overrides},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield Service(_wait_for_address(process, log), key)
    finally:
        process.terminate()
        process.wait(_TIMEOUT_S)


def _wait_for_address(process: "subprocess.Popen[bytes]", log: Path) -> str:
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        ended = process.poll() is not None
        output = log.read_text(encoding="utf-8", errors="replace")
        found = _ADDRESS.search(output)
        if found:
            return found[1]
        if ended:
            why = output.strip()[-500:] or f"it ended with status {process.returncode} and printed nothing"
            raise SimulationFailed(f"the simulation's service did not start: {why}")
        time.sleep(_POLL_INTERVAL_S)
    raise SimulationFailed(f"the simulation's service did not start within {_TIMEOUT_S:.0f} s")
