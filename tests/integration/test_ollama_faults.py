"""An Ollama that breaks under a collection: each failure is kept with its reason, and no model stays loaded."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.integration.command import tipbench
from tests.integration.ollama_proxy import Fault, ResidencySampler, ollama_proxy
from tests.integration.real_ollama.server import OllamaServer, default_cache
from tipbench.bench.engines.http import PAUSES_S
from tipbench.bench.records import BY_RULE
from tipbench.bench.suites.load import load_suite
from tipbench.bench.tracking.address import open_store
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.tracking.runs import CELL, KIND, stored_runs
from tipbench.bench.tracking.store import RunStore
from tipbench.core.settings import Settings

SUITE = Path(__file__).parent / "suites" / "product"
MODEL, OTHER_MODEL = "smollm2:135m", "smollm2:135m-b"
EXPERIMENT = "product-bench-faults"
CELLS = 8
TRIES = 1 + len(PAUSES_S)


def _command(tmp_path: Path, ollama_url: str, model: str = MODEL, unload: str = "model") -> tuple[str, ...]:
    return (
        *("collect", "--suite", str(SUITE), "--models", model, "--prompts", "plain", "--n-scenarios", "2"),
        *("--repeats", "4", "--max-tokens", "16", "--unload", unload, "--ollama-url", ollama_url),
        *("--experiment", EXPERIMENT, "--mlflow-url", f"sqlite:///{tmp_path / 'mlflow.db'}"),
    )


@contextmanager
def _stored(tmp_path: Path) -> Iterator[tuple[RunStore, Experiment]]:
    store = open_store(f"sqlite:///{tmp_path / 'mlflow.db'}", Settings()).store
    try:
        yield store, store.experiment(EXPERIMENT)
    finally:
        store.close()


def _failures(tmp_path: Path) -> list[str | None]:
    """Each run's reason, None for an answer, in the order in which they began."""
    with _stored(tmp_path) as (store, experiment):
        runs = store.all_runs(experiment, {KIND: CELL})
    for run in runs:
        assert run.status == ("FAILED" if "tipbench.failure" in run.tags else "FINISHED")
    return [run.tags.get("tipbench.failure") for run in sorted(runs, key=lambda run: run.started_ms)]


def _assert_each_cell_is_answered_and_counted_once(tmp_path: Path) -> None:
    with _stored(tmp_path) as (store, experiment):
        runs = stored_runs(store, experiment)
    assert [run.status for run in runs] == ["FINISHED"] * CELLS
    assert len({run.tags["tipbench.cell_key"] for run in runs}) == CELLS


def _nothing_is_loaded(ollama: OllamaServer, seconds: float = 5) -> bool:
    deadline = time.monotonic() + seconds
    while ollama.call("/api/ps")["models"]:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many tries as ever, sooner."""
    monkeypatch.setattr("tipbench.bench.engines.http.PAUSES_S", [0.1] * len(PAUSES_S))


@pytest.mark.usefixtures("short_pauses")
def test_each_fault_fails_its_own_cell_and_the_grid_goes_on(
    ollama: OllamaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIPBENCH_ENGINE_TIMEOUT", "3")
    cells: list[tuple[list[Fault | None], str | None]] = [
        ([None], None),
        ([Fault.HANG], "did not answer within 3 s; TIPBENCH_ENGINE_TIMEOUT sets the limit"),
        ([Fault.ERROR] * TRIES, "answered 500: llama runner process has terminated: signal: killed"),
        ([Fault.HALF_JSON], "answered with something other than a JSON object"),
        ([Fault.NO_BODY], "answered with something other than a JSON object"),
        ([Fault.EMPTY_ANSWER], None),
        ([Fault.CUT_OFF] * TRIES, "closed the connection: the response is cut off"),
        ([Fault.CUT_OFF, None], None),
    ]
    generations = [fault for faults, _ in cells for fault in faults]
    faults = {number: fault for number, fault in enumerate(generations, 1) if fault}
    reasons = [reason for _, reason in cells]
    failed = len([reason for reason in reasons if reason])

    with ollama_proxy(ollama.url, n_items=1, faults=faults) as proxy:
        command = _command(tmp_path, proxy.url)
        done = tipbench(*command)
        assert done.status == 1, done.err
        assert len(proxy.bodies("/api/chat")) == len(generations)
        assert _nothing_is_loaded(ollama)
        stored = _failures(tmp_path)
        assert len(stored) == CELLS
        for found, reason in zip(stored, reasons, strict=True):
            assert (found is None) == (reason is None), found
            if found and reason:
                assert found.startswith(f"Ollama at {proxy.url} {reason}")
                assert f"FAILED: Ollama at {proxy.url} {reason}" in done.err
        assert f"{CELLS - failed} cells answered with {CELLS - failed - 1} candidates, 1 of them without" in done.out
        assert f"{failed} cells FAILED; they are stored with their reasons" in done.out
        _assert_the_empty_answer_scores_the_minimum_by_rule(tmp_path)

        again = tipbench(*command)
        assert again.status == 1
        assert f"{failed} of them failed (--retry-failed retries them)" in again.out
        assert len(proxy.bodies("/api/chat")) == len(generations), "a failed cell is an outcome, too"

        retried = tipbench(*command, "--retry-failed")
        assert retried.status == 0, retried.err
        assert len(proxy.bodies("/api/chat")) == len(generations) + failed
    assert _nothing_is_loaded(ollama)
    _assert_each_cell_is_answered_and_counted_once(tmp_path)
    assert _failures(tmp_path) == [*stored, *[None] * failed], "the failures stay for the record"


def _assert_the_empty_answer_scores_the_minimum_by_rule(tmp_path: Path) -> None:
    with _stored(tmp_path) as (store, experiment):
        (run,) = store.all_runs(experiment, {KIND: CELL, "tipbench.judged_by": BY_RULE})
        assert store.text(run, "raw.txt") == ""
    assert run.metrics["answer/candidates"] == 0
    lowest = load_suite(str(SUITE)).rubric.lowest()
    assert lowest
    assert {key: run.metrics[key] for key in lowest} == lowest
    assert run.tags["judge_pending"] == "false"


@pytest.mark.parametrize("unload", ["call", "model"])
def test_a_generation_given_up_while_ollama_works_on_it_leaves_no_model_loaded(
    ollama: OllamaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unload: str
) -> None:
    monkeypatch.setenv("TIPBENCH_ENGINE_TIMEOUT", "0.2")
    done = tipbench(*_command(tmp_path, ollama.url, unload=unload), "--max-tokens", "2000", "--repeats", "2")
    assert done.status == 1, done.err
    reason = f"Ollama at {ollama.url} did not answer within 0.2 s; TIPBENCH_ENGINE_TIMEOUT sets the limit"
    assert _failures(tmp_path) == [reason] * 4
    assert _nothing_is_loaded(ollama)


def test_an_ollama_that_dies_ends_the_collection_and_the_next_start_does_what_is_missing(tmp_path: Path) -> None:
    with OllamaServer.start(default_cache()) as dying:
        command = _command(tmp_path, dying.url)
        words = [sys.executable, "-m", "tipbench", *command]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            assert any("[2/8]" in line for line in process.stderr)
            dying.stop()
            err = process.stderr.read()
    assert process.returncode == 2
    assert f"Error: Ollama at {dying.url} can't be reached" in err
    assert "start it with 'ollama serve'" in err
    assert "Traceback" not in err
    answered = len(_failures(tmp_path))
    assert 2 <= answered < CELLS
    assert _failures(tmp_path) == [None] * answered, "that it was away is no outcome of a cell"

    with OllamaServer.start(default_cache(), port=urlsplit(dying.url).port) as revived:
        done = tipbench(*command)
        assert done.status == 0, done.err
        assert f"{answered} of {CELLS} cells are stored already" in done.err
        assert revived.log.read_text().count('"/api/chat"') == CELLS - answered
        assert _nothing_is_loaded(revived)
    assert _failures(tmp_path) == [None] * CELLS
    _assert_each_cell_is_answered_and_counted_once(tmp_path)


@pytest.mark.usefixtures("short_pauses")
def test_a_model_held_when_ollama_went_out_of_reach_leaves_before_another_comes(
    ollama: OllamaServer, tmp_path: Path
) -> None:
    with ollama_proxy(ollama.url, n_items=1, faults={3: Fault.AWAY}) as proxy:
        done = tipbench(*_command(tmp_path, proxy.url))
    assert done.status == 2
    assert "can't be reached" in done.err
    assert _failures(tmp_path) == [None, None]
    assert not _nothing_is_loaded(ollama, seconds=0), "out of reach, it could not be unloaded"

    port = urlsplit(proxy.url).port or 0
    with ollama_proxy(ollama.url, n_items=1, port=port), ResidencySampler(ollama.url) as sampler:
        other = tipbench(*_command(tmp_path, proxy.url, model=OTHER_MODEL), "--repeats", "1")
    assert other.status == 0, other.err
    assert max(len(loaded) for loaded in sampler.samples) == 1
    assert f"{MODEL} may still be loaded" in other.err
    assert _nothing_is_loaded(ollama)
