"""Metrics and logs of the real commands: exact over workers that are killed, and with an id for each request."""

import json
import os
import signal
from collections.abc import Sequence

import httpx
import psutil

from tests.integration.recommending import Recommending, recommending
from tests.integration.serving import serving, until
from tests.recommender.service.asking import request, reward
from tests.web.exposition import Samples, samples
from tipbench.core.settings import Settings

TOKEN = "a-metrics-token-for-tests-only"
REQUESTS = "tipbench_http_requests_total"
MLFLOW_ERRORS = 'tipbench_store_errors_total{store="mlflow"}'


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


def test_without_mlflow_the_rest_is_there() -> None:
    with serving("--mlflow-url", "http://127.0.0.1:9", TIPBENCH_METRICS_TOKEN=TOKEN) as served:
        found: Samples = until(lambda: (now := scraped(served.url))[MLFLOW_ERRORS] and now)
        assert found['tipbench_jobs{state="queued"}'] == 0
        assert found["tipbench_undelivered_cells{}"] == 0
        assert not [key for key in found if key.startswith(("tipbench_cells", "tipbench_batches_on_hold"))]


def test_logs_as_json_are_an_object_on_each_line_with_the_request_s_id() -> None:
    served = Recommending("--workers", "2", TIPBENCH_LOG_FORMAT="json")
    try:
        workers: list[psutil.Process] = until(lambda: len(found := served.workers()) == 2 and found)
        os.kill(workers[0].pid, signal.SIGKILL)
        until(lambda: len(now := served.workers()) == 2 and workers[0] not in now)
        (Settings().home / "recommender" / "state" / "u1_egreedy.json").write_text("damaged \x1b[2J\n")
        with served.client() as client:
            damaged = client.post("/score/egreedy", json=request("e1"), headers={"X-Request-ID": "id-of-the-app"})
            refused = client.get("/a%1b%0Apath?secret-query", headers={"X-Request-ID": "not well-formed"})
    finally:
        logged = served.end()
    assert (damaged.status_code, damaged.headers["x-request-id"]) == (500, "id-of-the-app")
    assert damaged.json()["error"]["message"].endswith("the server's log says more under id-of-the-app")
    assert refused.status_code == 400
    *lines, farewell = logged.splitlines()
    assert farewell.startswith("The service has stopped.")
    entries = [json.loads(line) for line in lines]
    assert all({"time", "level", "logger", "message"} <= entry.keys() for entry in entries)
    assert "starting another one" in entries[0]["message"]
    assert "request_id" not in entries[0]
    error, access = (entry for entry in entries if entry.get("request_id") == "id-of-the-app")
    assert error["level"] == "ERROR"
    assert "StateDamaged" in error["exception"]
    assert (access["method"], access["path"], access["status"]) == ("POST", "/score/egreedy", 500)
    (other,) = (entry for entry in entries if entry.get("request_id") == refused.headers["x-request-id"])
    assert (other["status"], other["path"]) == (400, "/a\\u001b path")
    assert "secret-query" not in logged
    assert "\x1b" not in logged
