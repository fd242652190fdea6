"""The real server really is one: models, loading and unloading, errors, and no process left behind."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .server import (
    MODELS,
    PROGRAM,
    OllamaServer,
    RealOllamaError,
    default_cache,
    live_processes,
    prepare,
    unsupported_reason,
)

pytestmark = pytest.mark.skipif(unsupported_reason() is not None, reason=str(unsupported_reason()))


@pytest.fixture(scope="module")
def server() -> Iterator[OllamaServer]:
    with OllamaServer.start(default_cache()) as running:
        yield running


def chat(server: OllamaServer, model: str, **extra: Any) -> dict[str, Any]:
    body = {"model": model, "stream": False, "options": {"num_predict": 5}}
    return server.call("/api/chat", {**body, "messages": [{"role": "user", "content": "Hello"}], **extra})


def loaded(server: OllamaServer) -> set[str]:
    return {model["name"] for model in server.call("/api/ps")["models"]}


def eventually(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not (fulfilled := condition()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return fulfilled


def test_prepare_again_changes_nothing(server: OllamaServer) -> None:
    first = prepare(default_cache())
    before = (first.engine / PROGRAM).stat().st_mtime_ns
    assert prepare(default_cache()) == first
    assert (first.engine / PROGRAM).stat().st_mtime_ns == before


def test_models_differ(server: OllamaServer) -> None:
    digests = {model["name"]: model["digest"] for model in server.call("/api/tags")["models"]}
    assert set(MODELS) <= set(digests)
    assert len({digests[name] for name in MODELS}) == len(MODELS) == 3


def test_show_tells_the_size(server: OllamaServer) -> None:
    shown = server.call("/api/show", {"model": "smollm2:135m"})
    assert shown["model_info"]["general.parameter_count"] == 49552704
    assert ["num_ctx", "2048"] in [line.split() for line in shown["parameters"].splitlines()]  # in any order


def test_keep_alive_zero_unloads_after_the_answer(server: OllamaServer) -> None:
    answer = chat(server, "smollm2:135m", keep_alive=0)
    assert answer["done"] is True
    assert answer["message"]["role"] == "assistant"
    assert 1 <= answer["eval_count"] <= 5
    assert eventually(lambda: not loaded(server))


def test_without_keep_alive_zero_models_pile_up(server: OllamaServer) -> None:
    pair = ["smollm2:135m-b", "smollm2:135m-c"]
    for model in pair:
        chat(server, model)
    assert loaded(server) == set(pair)
    assert len(live_processes(server.process.pid)) == 3  # the server, and a runner for each model
    for model in pair:
        server.call("/api/generate", {"model": model, "keep_alive": 0, "stream": False})
    assert eventually(lambda: not loaded(server))
    assert eventually(lambda: live_processes(server.process.pid) == [server.process.pid])


def test_taken_port_is_reported_with_the_log(server: OllamaServer) -> None:
    with pytest.raises(RealOllamaError, match="address already in use"):
        OllamaServer.start(default_cache(), port=int(server.url.rpartition(":")[2]))


def test_no_process_is_left() -> None:
    with OllamaServer.start(default_cache()) as own:
        chat(own, "smollm2:135m")
        processes = live_processes(own.process.pid)
        assert len(processes) == 2  # the server and its runner
    assert live_processes(own.process.pid) == []
    assert [found for pid in processes for found in Path("/dev/shm").glob(f"*_{pid}_*")] == []
    assert not own.log.parent.exists()
