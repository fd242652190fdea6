"""The mission's quick start, flag for flag, on a real Ollama with three models and a real MLflow server."""

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import httpx
import pytest

from tests.integration.command import tipbench_process as tipbench
from tests.integration.filling import fill
from tests.integration.mlflow_server import MlflowServer
from tests.integration.ollama_proxy import OllamaProxy, ResidencySampler, ollama_proxy
from tests.integration.real_ollama.server import OllamaServer
from tipbench.bench.judge.sample import ANCHORS, REPEATS

MODELS = ("smollm2:135m", "smollm2:135m-b", "smollm2:135m-c")
PROMPTS = ("v1", "v2-mentor", "v3-few-shot")
EXPERIMENT = "tip-bench-2026-04-27"
SCENARIOS = 1
CELLS = len(MODELS) * len(PROMPTS) * SCENARIOS


@pytest.fixture(scope="module")
def collected(ollama: OllamaServer, mlflow: MlflowServer) -> Iterator[tuple[OllamaProxy, ResidencySampler]]:
    """Phase A, run once for all tests of this module."""
    with ollama_proxy(ollama.url, n_items=5) as proxy, ResidencySampler(ollama.url) as sampler:
        done = tipbench(
            "collect",
            *("--models", ",".join(MODELS), "--prompts", ",".join(PROMPTS)),
            *("--experiment", EXPERIMENT, "--n-tips", "5", "--diversity"),
            *("--n-scenarios", str(SCENARIOS), "--max-tokens", "160", "--ollama-url", proxy.url),
            MLFLOW_TRACKING_URI=mlflow.url,
        )
        assert done.status == 0, done.err
        yield proxy, sampler


def _search(url: str) -> list[dict[str, Any]]:
    """Runs as MLflow itself tells them, not through our own reader."""
    api = f"{url}/api/2.0/mlflow"
    found = httpx.get(f"{api}/experiments/get-by-name", params={"experiment_name": EXPERIMENT}).json()
    body = {"experiment_ids": [found["experiment"]["experiment_id"]], "max_results": 1000}
    runs: list[dict[str, Any]] = httpx.post(f"{api}/runs/search", json=body).json().get("runs", [])
    return runs


def _pairs(run: dict[str, Any], kind: str) -> dict[str, Any]:
    return {entry["key"]: entry["value"] for entry in run["data"].get(kind, [])}


def test_every_cell_is_a_finished_run_that_waits_for_a_judge(
    collected: tuple[OllamaProxy, ResidencySampler], mlflow: MlflowServer
) -> None:
    runs = _search(mlflow.url)
    cells = {tuple(_pairs(run, "params")[key] for key in ("model", "prompt", "scenario")) for run in runs}
    assert len(runs) == len(cells) == CELLS
    for run in runs:
        tags, params, metrics = (_pairs(run, kind) for kind in ("tags", "params", "metrics"))
        assert run["info"]["status"] == "FINISHED"
        assert tags["judge_pending"] == "true"
        for key in ("cell_key", "schema", "model_digest", "prompt_digest", "rubric", "rubric_digest"):
            assert tags[f"tipbench.{key}"]
        assert {"factor.persona", "factor.time_slot", "n_tips", "temperature", "seed", "diversity"} <= params.keys()
        assert {"gen/prompt_tokens", "gen/output_tokens", "gen/load_s", "gen/generate_s"} <= metrics.keys()
        assert metrics["answer/candidates"] == 5
        assert 0 < metrics["answer/diversity"] <= 1
        artifact_root = run["info"]["artifact_uri"].removeprefix("mlflow-artifacts:/")
        for name in ("candidates.json", "prompt.txt", "raw.txt", "rubric.md"):
            file = httpx.get(f"{mlflow.url}/api/2.0/mlflow-artifacts/artifacts/{artifact_root}/{name}")
            assert file.status_code == 200, name
            assert file.content


def test_every_generate_call_carries_keep_alive_zero(collected: tuple[OllamaProxy, ResidencySampler]) -> None:
    proxy, _ = collected
    chats = proxy.bodies("/api/chat")
    assert len(chats) == CELLS
    assert all(body["keep_alive"] == 0 for body in chats)
    assert [body["model"] for body in chats] == [model for model in MODELS for _ in range(CELLS // len(MODELS))]


def test_two_models_are_never_in_memory_at_once(collected: tuple[OllamaProxy, ResidencySampler]) -> None:
    _, sampler = collected
    assert max(len(loaded) for loaded in sampler.samples) == 1
    assert frozenset().union(*sampler.samples) == set(MODELS), "the sampler saw every model loaded"


def test_the_same_command_again_generates_nothing(
    collected: tuple[OllamaProxy, ResidencySampler], mlflow: MlflowServer
) -> None:
    proxy, _ = collected
    before = len(proxy.bodies("/api/chat"))
    done = tipbench(
        "collect",
        *("--models", ",".join(MODELS), "--experiment", EXPERIMENT, "--diversity"),
        *("--n-scenarios", str(SCENARIOS), "--max-tokens", "160", "--ollama-url", proxy.url),
        MLFLOW_TRACKING_URI=mlflow.url,
    )
    assert done.status == 0
    assert f"{CELLS} stored before" in done.out
    assert len(proxy.bodies("/api/chat")) == before
    assert len(_search(mlflow.url)) == CELLS


def test_export_apply_compare_and_the_numbers_in_mlflow_are_those_of_the_file(
    collected: tuple[OllamaProxy, ResidencySampler], mlflow: MlflowServer, tmp_path: Path
) -> None:
    file = tmp_path / "judge.json"
    environment = {"MLFLOW_TRACKING_URI": mlflow.url}
    exported = tipbench("judge", "--experiment", EXPERIMENT, "--export", str(file), "--sample", "5", **environment)
    assert exported.status == 0, exported.err
    schema = file.with_name("judge.schema.json")
    text = (file.read_text(encoding="utf-8") + schema.read_text(encoding="utf-8")).replace(
        "tip-v1", "the rubric's name"
    )
    for secret in (*MODELS, *PROMPTS, "smollm2", EXPERIMENT, *(run["info"]["run_id"] for run in _search(mlflow.url))):
        assert secret not in text

    filled = fill(file)
    assert len(filled["items"]) == CELLS * 5 + ANCHORS + REPEATS
    applied = tipbench("judge", "--experiment", EXPERIMENT, "--apply", str(file), **environment)
    assert applied.status == 0, applied.err

    runs = [run for run in _search(mlflow.url) if _pairs(run, "tags")["tipbench.kind"] == "cell"]
    batch = next(run for run in _search(mlflow.url) if _pairs(run, "tags")["tipbench.kind"] == "batch")
    root = batch["info"]["artifact_uri"].removeprefix("mlflow-artifacts:/")
    manifest = httpx.get(f"{mlflow.url}/api/2.0/mlflow-artifacts/artifacts/{root}/manifest.json").json()
    where = {slot["slot"]: slot["run_id"] for slot in manifest["slots"] if slot["kind"] == "candidate"}
    expected: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        items = [item for item in filled["items"] if where.get(item["slot"]) == run["info"]["run_id"]]
        assert len(items) == 5
        metrics, params = _pairs(run, "metrics"), _pairs(run, "params")
        for criterion in ("relevance", "actionability", "tone"):
            assert metrics[criterion] == pytest.approx(fmean(item["scores"][criterion] for item in items))
        composite = fmean(
            sum(item["scores"].values()) + 2 * item["checked"]["format_ok"] - item["checked"]["overlong"]
            for item in items
        )
        assert metrics["composite"] == pytest.approx(composite)
        assert _pairs(run, "tags")["judge_pending"] == "false"
        expected.setdefault((params["model"], params["prompt"]), []).append(composite)

    compared = tipbench("compare", "--experiment", EXPERIMENT, "--format", "json", **environment)
    assert compared.status == 0, compared.err
    board = json.loads(compared.out)
    assert board["cells"] == {"judged": CELLS, "pending": 0, "failed": 0, "missing": 0}
    assert board["provisional"] is False
    assert board["judges"] == ["person"]
    shown = {(row["model"], row["prompt"]): row["composite"] for row in board["standings"]}
    assert shown == {key: pytest.approx(fmean(values)) for key, values in expected.items()}
    ranked = [row["composite"] for row in board["standings"]]
    assert ranked == sorted(ranked, reverse=True)

    again = tipbench("judge", "--experiment", EXPERIMENT, "--apply", str(file), **environment)
    assert again.status == 0
    assert "nothing changed" in again.out
