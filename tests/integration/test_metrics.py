"""Metrics of the real commands: exact over workers that are killed, and behind a token."""

import os
import signal
from collections.abc import Sequence

import httpx
import psutil

from tests.integration.recommending import Recommending, recommending
from tests.integration.serving import serving, until
from tests.recommender.service.asking import request, reward
from tests.web.exposition import Samples, samples

TOKEN = "a-metrics-token-for-tests-only"
REQUESTS = "tipbench_http_requests_total"


def scraped(url: str) -> Samples:
    """A new connection each time, which any worker may take."""
    answer = httpx.get(f"{url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}, trust_env=False)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return samples(answer.text)


def ask(served: Recommending, events: Sequence[str]) -> None:
    """Score and reward each event once, both twice, with a connection each."""
    for event in events:
        with served.client() as client:
            for _ in range(2):
                client.post("/score/egreedy", json=request(event)).raise_for_status()
            for _ in range(2):
                client.post("/reward/egreedy", json=reward(event)).raise_for_status()


def test_counters_add_up_over_workers_that_are_killed() -> None:
    with recommending("--workers", "2", TIPBENCH_METRICS_TOKEN=TOKEN) as served:
        workers: list[psutil.Process] = until(lambda: len(found := served.workers()) == 2 and found)
        ask(served, [f"e{number}" for number in range(20)])
        before = scraped(served.url)
        os.kill(workers[0].pid, signal.SIGKILL)
        until(lambda: len(now := served.workers()) == 2 and workers[0] not in now)
        ask(served, [f"f{number}" for number in range(20)])
        after = [scraped(served.url) for _ in range(8)]
        for found, events in ((before, 20), *((one, 40) for one in after)):
            assert found['tipbench_decisions_total{policy="egreedy"}'] == events
            assert found['tipbench_rewards_total{policy="egreedy",status="applied"}'] == events
            assert found['tipbench_rewards_total{policy="egreedy",status="duplicate"}'] == events
            for route in ("/score/egreedy", "/reward/egreedy"):
                labels = f'method="POST",route="{route}",server="recommend"'
                assert found[f'{REQUESTS}{{{labels},status="200"}}'] == 2 * events
                assert found[f"tipbench_http_request_duration_seconds_count{{{labels}}}"] == 2 * events
            for operation in ("score", "reward"):
                labels = f'operation="{operation}",store="files"'
                assert found[f"tipbench_store_duration_seconds_count{{{labels}}}"] == 2 * events
        assert all(after[0][key] >= value for key, value in before.items())


def test_the_admin_server_counts_too() -> None:
    with serving(TIPBENCH_METRICS_TOKEN=TOKEN) as served, served.client() as client:
        for _ in range(3):
            client.get("/api/jobs").raise_for_status()
        found = scraped(served.url)
        assert found[f'{REQUESTS}{{method="GET",route="/api/jobs",server="serve",status="200"}}'] == 3
        assert client.get("/metrics").status_code == 200
        with served.client(TOKEN) as other:
            assert other.get("/api/jobs").status_code == 401
