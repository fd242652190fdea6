"""Memory on a real Ollama: never two models at once, in either unload mode, whatever ends a collection."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest

from tests.integration.command import tipbench
from tests.integration.ollama_proxy import ResidencySampler
from tests.integration.real_ollama.server import OllamaServer
from tipbench.bench.tracking.address import open_store
from tipbench.bench.tracking.runs import stored_runs
from tipbench.core.settings import Settings

MODELS = ("smollm2:135m", "smollm2:135m-b", "smollm2:135m-c")


def _resident(url: str) -> list[str]:
    with urllib.request.urlopen(f"{url}/api/ps", timeout=30) as reply:
        return [model["name"] for model in json.load(reply)["models"]]


def _until(condition: Callable[[], bool], seconds: float = 30) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def _words(ollama: OllamaServer, tmp_path: Path, *models: str, n_scenarios: int = 2) -> tuple[str, ...]:
    return (
        *("collect", "--models", ",".join(models), "--prompts", "v1", "--n-scenarios", str(n_scenarios)),
        *("--max-tokens", "8", "--unload", "model", "--ollama-url", ollama.url),
        *("--experiment", "tip-bench-ram", "--mlflow-url", f"sqlite:///{tmp_path / 'm.db'}"),
    )


def test_a_held_model_is_loaded_once_and_leaves_before_the_next(ollama: OllamaServer, tmp_path: Path) -> None:
    with ResidencySampler(ollama.url) as sampler:
        done = tipbench(*_words(ollama, tmp_path, *MODELS))
    assert done.status == 0, done.err
    blocks = [loaded for loaded, _ in groupby(sampler.samples) if loaded]
    assert blocks == [frozenset({model}) for model in MODELS], "each in one block of its own"
    assert _resident(ollama.url) == []
    opened = open_store(f"sqlite:///{tmp_path / 'm.db'}", Settings())
    runs = stored_runs(opened.store, opened.store.experiment("tip-bench-ram"))
    opened.store.close()
    assert len(runs) == 6
    for run in runs:
        assert run.metrics["ram/resident_models_peak"] == 1
        assert 50e6 < run.metrics["ram/resident_bytes_peak"] < 1e9
        assert 20e6 < run.metrics["ram/own_bytes_peak"] < 4e9
        assert run.metrics["ram/swapped_in_bytes"] >= 0


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_collection_leaves_no_model_loaded(
    ollama: OllamaServer, tmp_path: Path, ending: signal.Signals
) -> None:
    words = _words(ollama, tmp_path, MODELS[0], n_scenarios=8)
    process = subprocess.Popen([sys.executable, "-m", "tipbench", *words], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert any("[1/8]" in line for line in process.stderr), "the first cell is done, the model is held"
    process.send_signal(ending)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Interrupted" in err
    assert _resident(ollama.url) == []


def test_what_a_killed_collection_left_loaded_is_unloaded_by_the_next(ollama: OllamaServer, tmp_path: Path) -> None:
    words = _words(ollama, tmp_path, MODELS[0], n_scenarios=8)
    with subprocess.Popen([sys.executable, "-m", "tipbench", *words], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any("[1/8]" in line for line in process.stderr), "the first cell is done, the model is held"
        process.kill()
    time.sleep(3)  # the server finishes what it was asked
    assert _resident(ollama.url) == [MODELS[0]], "killed, it could not unload"
    with ResidencySampler(ollama.url) as sampler:
        done = tipbench(*_words(ollama, tmp_path, MODELS[1], n_scenarios=1))
    assert done.status == 0, done.err
    assert "may still be loaded" in done.err
    assert max(len(loaded) for loaded in sampler.samples) == 1
    assert _resident(ollama.url) == []


def test_a_second_collection_on_the_same_ollama_waits_or_is_refused(ollama: OllamaServer, tmp_path: Path) -> None:
    words = _words(ollama, tmp_path, MODELS[0], n_scenarios=4)
    process = subprocess.Popen(
        [sys.executable, "-m", "tipbench", *words], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=os.environ
    )
    assert _until(lambda: _resident(ollama.url) == [MODELS[0]])
    second = (*_words(ollama, tmp_path, MODELS[1], n_scenarios=1), "--experiment", "tip-bench-ram-2")
    refused = tipbench(*second, "--no-wait")
    assert refused.status == 2
    assert "another collection is using" in refused.err
    with ResidencySampler(ollama.url) as sampler:
        waited = tipbench(*second)
    assert waited.status == 0, waited.err
    assert "waiting until it is done" in waited.err
    assert process.wait(60) == 0
    assert max(len(loaded) for loaded in sampler.samples) == 1
