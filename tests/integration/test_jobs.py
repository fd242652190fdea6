"""Jobs beside real things: a server that is killed, Ollamas that are shared, models that must not stay loaded."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bench.engines.stand_in import Reply, StandIn
from tests.integration.real_ollama.server import OllamaServer
from tests.integration.server.jobs.running import Bench, has_ended, is_collecting, until
from tipbench.bench.options import Options
from tipbench.bench.tracking.address import open_store
from tipbench.bench.tracking.runs import stored_runs
from tipbench.core.settings import Settings
from tipbench.server.jobs.interface import Job

pytestmark = pytest.mark.timeout(120)

MODEL = "smollm2:135m"
A_SERVER = """
import sys, time, uuid
from tipbench.bench.options import make_options, read_config
from tipbench.server.jobs.subprocess import SubprocessRunner
from tipbench.core.settings import Settings
from pathlib import Path
settings = Settings()
runner = SubprocessRunner(settings.home, settings, time.time, lambda: uuid.uuid4().hex[:16])
for config in sys.argv[1:]:
    print(runner.start(make_options(read_config(Path(config)))).id, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def bench(home: Path, tmp_path: Path) -> Iterator[Bench]:
    with Bench(home, tmp_path) as made:
        yield made


def start_elsewhere(tmp_path: Path, *requests: Options) -> tuple[subprocess.Popen[str], list[str]]:
    """A server in a process of its own, and its jobs."""
    configs = []
    for number, options in enumerate(requests):
        configs.append(str(tmp_path / f"request-{number}.json"))
        Path(configs[-1]).write_text(options.model_dump_json())
    server = subprocess.Popen(
        [sys.executable, "-c", A_SERVER, *configs], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout
    return server, [server.stdout.readline().strip() for _ in requests]


def kill(server: subprocess.Popen[str]) -> None:
    with server:
        server.kill()


def cells(bench: Bench, experiment: str) -> int:
    store = open_store(f"sqlite:///{bench.folder / 'm.db'}", Settings()).store
    try:
        return len(stored_runs(store, store.experiment(experiment)))
    finally:
        store.close()


def overlap(one: Job, other: Job) -> bool:
    assert one.started_ms and one.ended_ms and other.started_ms and other.ended_ms  # noqa: PT018 - for the types
    return one.started_ms < other.ended_ms and other.started_ms < one.ended_ms


def resident(url: str) -> list[str]:
    with urllib.request.urlopen(f"{url}/api/ps", timeout=30) as reply:
        return [model["name"] for model in json.load(reply)["models"]]


def held_at(ollama: OllamaServer) -> dict[str, Any]:
    """Cells on a real Ollama that holds the model until the last of them."""
    return {"models": MODEL, "ollama_url": ollama.url, "unload": "model", "max_tokens": 8, "n_scenarios": 8}


def test_a_server_that_is_killed_loses_no_job(bench: Bench, tmp_path: Path) -> None:
    running, waiting = bench.request("x", 0.4, n_scenarios=4), bench.request("x", n_scenarios=5)
    server, (first, second) = start_elsewhere(tmp_path, running, waiting)
    folder = bench.home / "server" / "jobs" / first
    until(
        lambda: (folder / "progress.json").exists() and '"phase": "collect"' in (folder / "progress.json").read_text()
    )
    kill(server)
    runner = bench.open()
    assert (runner.job(first).state, runner.job(second).state) == ("running", "queued")
    until(lambda: runner.job(second).ended)
    assert [(job.state, job.exit_status) for job in runner.jobs()] == [("finished", 0)] * 2
    assert runner.progress(first).done == 4
    assert cells(bench, "tip-bench-x") == 4 + 5, "each script is a model of its own, and nothing was lost"


def an_ollama(server: StandIn) -> None:
    server.on("/api/show", Reply({"model_info": {"general.parameter_count": 1_000_000}}))
    server.on("/api/tags", Reply({"models": [{"name": "tiny", "digest": "abc", "size": 1000}]}))
    server.on("/api/ps", Reply({"models": []}))
    server.on("/api/generate", Reply({"done_reason": "unload"}))
    server.on("/api/chat", Reply({"message": {"content": '["Close the door."]'}, "done_reason": "stop"}))


def test_one_job_an_endpoint_and_two_on_two(bench: Bench) -> None:
    with StandIn() as here, StandIn() as there:
        an_ollama(here)
        an_ollama(there)
        runner = bench.open()
        urls = (here.url, here.url.replace("127.0.0.1", "localhost"), there.url)
        first, second, other = (
            runner.start(bench.request(f"e{number}", models="tiny", ollama_url=url)) for number, url in enumerate(urls)
        )
        until(lambda: runner.job(second.id).message)
        assert runner.job(second.id).message == f"waits for job {first.id} ({first.experiment}) at {here.url}"
        until(lambda: all(job.ended for job in runner.jobs()))
        first, second, other = (runner.job(job.id) for job in (first, second, other))
        assert [job.state for job in (first, second, other)] == ["finished"] * 3, runner.jobs()
        assert not overlap(first, second)
        assert overlap(first, other)
        assert len(here.bodies("/api/chat")) == 4
        assert len(there.bodies("/api/chat")) == 2


def test_a_cancelled_job_leaves_no_model_loaded(bench: Bench, ollama: OllamaServer) -> None:
    runner = bench.open()
    job = runner.start(bench.request(**held_at(ollama)))
    until(lambda: resident(ollama.url) == [MODEL])
    runner.cancel(job.id)
    until(lambda: has_ended(runner, job))
    assert (runner.job(job.id).state, runner.job(job.id).exit_status) == ("cancelled", 130)
    assert resident(ollama.url) == []


def test_server_and_job_killed_the_next_server_marks_it_and_unloads_the_model(
    bench: Bench, ollama: OllamaServer, tmp_path: Path
) -> None:
    server, [killed] = start_elsewhere(tmp_path, bench.request(**held_at(ollama)))
    progress = bench.home / "server" / "jobs" / killed / "progress.json"
    until(lambda: progress.exists() and json.loads(progress.read_text())["done"])
    kill(server)
    os.killpg(json.loads((progress.parent / "pids.json").read_text())["supervisor"], signal.SIGKILL)
    time.sleep(3)  # the server finishes what it was asked
    assert resident(ollama.url) == [MODEL], "killed, it could not unload"
    runner = bench.open()
    until(lambda: runner.job(killed).ended)
    assert runner.job(killed).state == "failed"
    assert runner.job(killed).message.startswith("its process ended without a message")
    assert "may still be loaded" not in runner.job(killed).message
    assert resident(ollama.url) == []


def test_an_ollama_that_is_away_when_a_model_should_leave_is_told(bench: Bench) -> None:
    with StandIn() as server:
        an_ollama(server)
        server.on("/api/chat", Reply(hangs=True))
        runner = bench.open()
        job = runner.start(bench.request(models="tiny", ollama_url=server.url))
        until(lambda: server.bodies("/api/chat") and is_collecting(runner, job))
        server.on("/api/ps", Reply({"error": "denied"}, 403))
        os.killpg(bench.job_folder(job).pids().supervisor or 0, signal.SIGKILL)
        until(lambda: has_ended(runner, job))
        job = runner.job(job.id)
    assert job.state == "failed"
    assert "; a model that it used may still be loaded: Ollama at" in job.message
