"""Every client of ours, before servers that answer as none should: one of our errors, soon, and nothing else."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from tests.bench.engines.stand_in import a_request
from tests.hostile_server import MANNERS, hostile_server
from tipbench.airflow.remote import client as airflow_client
from tipbench.airflow.remote.client import AirflowApi
from tipbench.bench.engines import http as engine_http
from tipbench.bench.engines.ollama import OllamaEngine
from tipbench.bench.engines.openai_compatible import OpenAICompatibleEngine
from tipbench.bench.judge.judges.interface import JudgeName
from tipbench.bench.judge.judges.webhook import WebhookJudge
from tipbench.bench.tracking import mlflow_client
from tipbench.bench.tracking.mlflow_client import MlflowClient
from tipbench.core.errors import TipbenchError
from tipbench.core.settings import Settings

WITHIN_S = 0.15
FILE = {"batch": "b1", "items": [], "secret": "x"}


def ollama(url: str) -> OllamaEngine:
    return OllamaEngine(url, WITHIN_S, sleep=lambda _: None)


def openai(url: str) -> OpenAICompatibleEngine:
    return OpenAICompatibleEngine(url, "key", WITHIN_S)


def mlflow(url: str) -> MlflowClient:
    return MlflowClient(url, Settings({}))


def webhook(url: str) -> WebhookJudge:
    return WebhookJudge(url, "s" * 40, JudgeName("webhook"), WITHIN_S, time.time, sleep=lambda _: None)


def airflow(url: str) -> AirflowApi:
    return AirflowApi(Settings({"TIPBENCH_AIRFLOW_URL": url, "TIPBENCH_AIRFLOW_TOKEN": "t"}))


CALLS: dict[str, tuple[Callable[[str], Any], Callable[[Any], Any]]] = {
    "ollama describes": (ollama, lambda engine: engine.describe("gemma3:1b")),
    "ollama lists": (ollama, lambda engine: engine.models()),
    "ollama generates": (ollama, lambda engine: engine.generate(a_request("gemma3:1b"))),
    "ollama unloads": (ollama, lambda engine: engine.unload("gemma3:1b")),
    "ollama's memory": (ollama, lambda engine: engine.resident()),
    "openai lists": (openai, lambda engine: engine.models()),
    "openai generates": (openai, lambda engine: engine.generate(a_request("openai/x"))),
    "mlflow finds": (mlflow, lambda client: client.find_experiment("tip-bench-x")),
    "mlflow lists": (mlflow, lambda client: client.list_experiments("tip-bench-")),
    "mlflow searches": (mlflow, lambda client: list(client.search_runs("1", {}))),
    "mlflow creates": (mlflow, lambda client: client.create_run("1", "x", 0, {})),
    "webhook": (webhook, lambda judge: judge.score(FILE)),
    "airflow": (airflow, lambda client: client.get("/x")),
}
FINE = {("openai lists", "other JSON"), ("airflow", "other JSON"), ("webhook", "other JSON")}  # for others to check


@pytest.fixture(autouse=True)
def _short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_http, "_QUICK_TIMEOUT_S", WITHIN_S)
    monkeypatch.setattr(engine_http, "PAUSES_S", (0.0, 0.0))
    monkeypatch.setattr(mlflow_client, "_WITHIN_S", WITHIN_S)
    monkeypatch.setattr(airflow_client, "_TOTAL_TIMEOUT_S", WITHIN_S)


@pytest.mark.parametrize("manner", [manner for manner in MANNERS if manner != "drip on a used connection"])
@pytest.mark.parametrize("call", CALLS)
def test_one_of_our_errors_and_soon(call: str, manner: str) -> None:
    with hostile_server(manner) as server:
        started = time.monotonic()
        opened, called = CALLS[call]
        client = opened(server.url)
        with nullcontext() if (call, manner) in FINE else pytest.raises(TipbenchError) as caught:
            called(client)
        if hasattr(client, "close"):
            client.close()
        assert time.monotonic() - started < WITHIN_S + 4.0
    if caught:
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 700
        assert "It works" not in str(caught.value)
        assert "no HTTP at all" not in str(caught.value)
