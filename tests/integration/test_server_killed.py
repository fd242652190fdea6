"""SIGKILL of the server while a job runs on a real Ollama: the job is found again, and no model stays loaded."""

import json
import os
import signal
import urllib.request
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.integration.real_ollama.server import OllamaServer
from tests.integration.serving import Served, ended_job, serving, start_run, until
from tipbench.bench.tracking.address import open_store
from tipbench.bench.tracking.runs import stored_runs
from tipbench.core.settings import Settings

EXPERIMENT = "tip-bench-killed"


def _resident(ollama: OllamaServer) -> list[str]:
    with urllib.request.urlopen(f"{ollama.url}/api/ps", timeout=30) as reply:
        return [model["name"] for model in json.load(reply)["models"]]


def _start(client: httpx.Client, ollama: OllamaServer, repeats: int) -> dict[str, Any]:
    """A job that holds its model, in the middle of its cells."""
    job = start_run(
        client,
        models="smollm2:135m",
        prompts="v1",
        n_scenarios=2,
        n_tips=2,
        max_tokens=40,
        repeats=repeats,
        unload="model",
        ollama_url=ollama.url,
        experiment=EXPERIMENT,
    )
    until(lambda: client.get(f"/api/jobs/{job['id']}").json()["progress"]["done"] >= 1)
    assert _resident(ollama)
    return job


def _cells(address: str) -> list[str]:
    """The keys of the stored cells, one for each run."""
    store = open_store(address, Settings()).store
    keys = [run.tags["tipbench.cell_key"] for run in stored_runs(store, store.experiment(EXPERIMENT))]
    runs = list(store.runs(store.experiment(EXPERIMENT), {"tipbench.kind": "cell"}))
    store.close()
    assert len(runs) == len(keys), "no cell was generated twice"
    return keys


def _processes_of(job_id: str) -> list[psutil.Process]:
    running = psutil.process_iter(["cmdline"])
    return [one for one in running if any(job_id in word for word in one.info["cmdline"] or ())]


def test_a_job_goes_on_without_its_server_and_is_found_by_the_next(ollama: OllamaServer, tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'm.db'}"
    first = Served("--mlflow-url", address)
    with first.client() as client:
        job = _start(client, ollama, repeats=6)
    first.kill()
    assert _processes_of(job["id"]), "the job goes on"
    with serving("--mlflow-url", address) as second, second.client() as client:
        found = client.get(f"/api/jobs/{job['id']}").raise_for_status().json()
        assert found["state"] in ("running", "finished")
        ended = ended_job(client, job["id"])
        assert (ended["state"], ended["exit_status"]) == ("finished", 0), ended["log"]
        assert ended["progress"]["done"] == 12
        assert client.get(f"/api/bench/runs/{EXPERIMENT}").json()["total"] == 12
    assert len(set(_cells(address))) == 12
    assert not _resident(ollama)


def test_a_job_that_died_with_its_server_is_marked_and_goes_on_when_it_is_run_again(
    ollama: OllamaServer, tmp_path: Path
) -> None:
    address = f"sqlite:///{tmp_path / 'm.db'}"
    first = Served("--mlflow-url", address)
    with first.client() as client:
        job = _start(client, ollama, repeats=4)
    first.kill()
    for process in _processes_of(job["id"]):
        os.kill(process.pid, signal.SIGKILL)
    assert _resident(ollama), "the model was left loaded"
    with serving("--mlflow-url", address) as second, second.client() as client:
        ended = ended_job(client, job["id"])
        assert ended["state"] == "failed"
        assert "run it again" in ended["message"]
        until(lambda: not _resident(ollama))
        config = {key: value for key, value in job["config"].items() if value is not None}
        again = ended_job(client, start_run(client, **config)["id"])
        assert again["state"] == "finished", again["log"]
        assert again["progress"]["stored"] >= 1
        assert len(set(_cells(address))) == 8
    assert not _resident(ollama)
