"""A promotion under a running service: all workers follow, and no reward goes astray."""

import json
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import httpx

from tests.integration.command import tipbench
from tests.integration.recommending import HEADERS, Recommending, recommending
from tests.integration.serving import until
from tests.recommender.gates import V2, held_gate
from tests.recommender.service.asking import request, reward
from tipbench.core.settings import Settings
from tipbench.recommender.promotion.live import live_now
from tipbench.recommender.store.moving import open_store


class _Asking:
    """Requests, each on a connection of its own: one stays with the worker that took it."""

    def __init__(self, served: Recommending, home: Path) -> None:
        self._address = served.url.removeprefix("http://")
        self._decisions = home / "recommender" / "decisions"
        self._number = 0

    def by_all_workers(self) -> set[str]:
        """Which policies answer, until both workers have served something new."""
        found, before = set(), self._served()
        while any(size == before.get(name, 0) for name, size in self._served().items()) or len(self._served()) < 2:
            found.add(self.one())
            assert self._number < 400
        return found

    def one(self) -> str:
        self._number += 1
        connection = HTTPConnection(self._address, timeout=60)  # a tenth of what httpx takes
        headers = {**HEADERS, "Content-Type": "application/json"}
        connection.request("POST", "/score", json.dumps(request(self.last)), headers)
        found: str = json.loads(connection.getresponse().read())["policy"]
        connection.close()
        return found

    @property
    def last(self) -> str:
        return f"e{self._number}"

    def _served(self) -> dict[str, int]:
        """How much each worker has written."""
        return {path.name.split("-")[1]: path.stat().st_size for path in self._decisions.glob("*.jsonl")}


def test_all_workers_follow_at_once_and_rewards_go_to_whoever_served(home: Path) -> None:
    held_gate(home)
    with recommending("--workers", "2") as served, served.client() as client:
        until(lambda: len(served.workers()) == 2)
        asking = _Asking(served, home)
        assert asking.by_all_workers() == {"egreedy"}
        first = asking.last
        assert tipbench("recommend", "promote", "egreedy/v2", "--yes").status == 0
        assert asking.by_all_workers() == {"egreedy/v2"}
        second = asking.last
        assert client.get("/health").json()["live"] == "egreedy/v2"
        assert client.post("/reward", json=reward(first)).json()["policy"] == "egreedy"
        assert tipbench("recommend", "rollback", "--yes").status == 0
        assert asking.by_all_workers() == {"egreedy"}
        assert client.post("/reward", json=reward(second)).json()["policy"] == "egreedy/v2"
        for policy in ("egreedy", "egreedy/v2"):
            assert client.get(f"/stats/{policy}/u1").json()["n"] == 1


def test_a_policy_of_a_newer_tipbench_is_refused_per_request_and_at_the_next_start() -> None:
    with recommending() as served, served.client() as client:
        with closing(open_store(Settings())) as store:
            store.promotions.append(V2.model_copy(update={"to": "egreedy/v9"}), 0)
        refused = client.post("/score", json=request("e1"))
        assert refused.status_code == 409
        assert (
            "'egreedy/v9' was promoted, but this version of tipbench only knows" in refused.json()["error"]["message"]
        )
        assert client.post("/score/egreedy", json=request("e1")).status_code == 200
        health = httpx.get(f"{served.url}/health", trust_env=False)
        assert health.status_code == 503
        assert "v3" not in health.text
    again = tipbench("recommend", "serve", "--port", "0")
    assert again.status == 2
    assert "install the version that promoted it, or roll it back: tipbench recommend rollback" in again.err
    assert tipbench("recommend", "rollback", "--yes").status == 0
    assert live_now(Settings()) == "egreedy"
