"""Many who ask at once, and a service that is killed meanwhile: no reward is lost, none is learned twice."""

import json
import multiprocessing
import random
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from http.client import HTTPConnection
from typing import Any

import httpx
import pytest

from tests.integration.recommending import HEADERS, Recommending, recommending
from tests.recommender.service.asking import request, reward
from tipbench.core.settings import Settings
from tipbench.recommender.log.segmented_log import entries

PROCESSES = 8
PAIRS = 60  # of each process; benchmarks/reward_kills does more
KILLS = 10


def _pairs(url: str, process: int, number: int) -> int:
    """Scores and rewards one user so often; every fifth reward is sent again. How many were learned."""
    applied = 0
    client = HTTPConnection(url.removeprefix("http://"), timeout=60)  # a tenth of what httpx takes

    def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
        client.request("POST", path, json.dumps(body), {**HEADERS, "Content-Type": "application/json"})
        answer = client.getresponse()
        assert answer.status == 200
        told: dict[str, Any] = json.loads(answer.read())
        return told

    for pair in range(number):
        event = f"p{process}-{pair}"
        post("/score", request(event))
        told = [post("/reward", reward(event))["status"] for _ in range(2 if pair % 5 == 0 else 1)]
        assert told == ["applied", "duplicate"][: len(told)]
        applied += 1
    client.close()
    return applied


def test_eight_processes_reward_one_user_hundreds_of_times() -> None:
    with recommending("--workers", "2") as served:
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(PROCESSES, mp_context=spawn) as pool:
            doing = [pool.submit(_pairs, served.url, process, PAIRS) for process in range(PROCESSES)]
            assert sum(done.result() for done in doing) == PROCESSES * PAIRS
        with served.client() as client:
            known = client.get("/stats/egreedy/u1").json()
    assert known["n"] == PROCESSES * PAIRS
    assert known["duplicates"] == PROCESSES * PAIRS // 5
    assert known["mean_reward"] == pytest.approx(0.5)
    assert known["waiting"] == 0


class _Asking(threading.Thread):
    """Scores and rewards its own user until the service is gone; remembers what was acknowledged."""

    def __init__(self, url: str, user_id: str, acknowledged: list[str], open: list[str]) -> None:
        super().__init__()
        self._url, self._user, self._acknowledged, self._open = url, user_id, acknowledged, open

    def run(self) -> None:
        with (
            suppress(httpx.TransportError),
            httpx.Client(base_url=self._url, headers=HEADERS, timeout=60, trust_env=False) as client,
        ):
            for event in list(self._open):  # what was not acknowledged is sent again, and learned at most once
                self._reward(client, event)
            while True:
                event = f"e{time.monotonic_ns()}"
                client.post("/score", json=request(event, self._user)).raise_for_status()
                self._open.append(event)
                self._reward(client, event)

    def _reward(self, client: httpx.Client, event: str) -> None:
        client.post("/reward", json=reward(event, 0.5, self._user)).raise_for_status()
        self._acknowledged.append(event)
        self._open.remove(event)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_what_was_acknowledged_outlives_a_kill(workers: str) -> None:
    generator = random.Random(8)
    users: dict[str, tuple[list[str], list[str]]] = {f"u{number}": ([], []) for number in range(3)}
    for _ in range(KILLS // 2):
        served = Recommending("--workers", workers)
        with served.client() as client:
            client.get("/health").raise_for_status()
        asking = [_Asking(served.url, user, *lists) for user, lists in users.items()]
        for thread in asking:
            thread.start()
        until = time.monotonic() + 30
        while not all(acknowledged for acknowledged, _ in users.values()) and time.monotonic() < until:
            time.sleep(0.01)  # on a busy machine the first answers may take longer than the moments below
        time.sleep(0.05 + generator.random() / 2)
        logged = served.kill()
        for thread in asking:
            thread.join(60)
            assert not thread.is_alive()
        assert "Traceback" not in logged
        for state in (Settings().home / "recommender" / "state").glob("*.json"):
            assert json.loads(state.read_bytes())["user_id"] in users
    with recommending() as served, served.client() as client:
        for user, (acknowledged, unsure) in users.items():
            n = client.get(f"/stats/egreedy/{user}").json()["n"]
            assert len(acknowledged) <= n <= len(acknowledged) + len(unsure)
            assert len(set(acknowledged)) == len(acknowledged) > 0
            for event in unsure:
                assert client.post("/reward", json=reward(event, 0.5, user)).status_code == 200
            assert client.get(f"/stats/egreedy/{user}").json()["n"] == len(acknowledged) + len(unsure)
    rewarded = {entry["event_id"] for entry in _decisions() if entry["kind"] == "reward"}
    assert {event for acknowledged, _ in users.values() for event in acknowledged} <= rewarded


def _decisions() -> list[dict[str, object]]:
    return list(entries(Settings().home / "recommender" / "decisions"))
