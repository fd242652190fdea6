"""OpenAI-compatible servers: a stand-in for the odd ones, and llama.cpp's own server over HTTP."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.bench.engines.stand_in import SCORE_SCHEMA, Reply, StandIn, a_request, free_address
from tipbench.bench.engines.admission import admit
from tipbench.bench.engines.openai_compatible import OpenAICompatibleEngine, read_completion
from tipbench.core.errors import EngineUnreachable, GenerationFailed, ModelMissing, Problems

KEY = "sk-very-secret"
COMPLETION = {
    "choices": [{"message": {"role": "assistant", "content": "Go for a walk."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 31, "completion_tokens": 6},
}
LISTED = {
    "data": [
        {"id": "small", "meta": {"n_params": 1_500_000_000, "size": 986_000_000, "n_ctx_train": 32_768}},
        {"id": "org/served", "max_model_len": 4096},
    ]
}


@pytest.fixture
def engine(stand_in: StandIn) -> Iterator[OpenAICompatibleEngine]:
    made = OpenAICompatibleEngine(f"{stand_in.url}/v1/", KEY, timeout_s=5)
    yield made
    made.close()


def test_generate(stand_in: StandIn, engine: OpenAICompatibleEngine) -> None:
    stand_in.on("/v1/chat/completions", Reply(COMPLETION))
    made = engine.generate(a_request("openai/org/served"))
    assert (made.text, made.finish_reason, made.prompt_tokens, made.output_tokens) == ("Go for a walk.", "stop", 31, 6)
    assert made.generate_s is not None
    assert 0 < made.generate_s < 5
    [asked] = stand_in.asked
    assert asked.headers["Authorization"] == f"Bearer {KEY}"
    assert asked.body["messages"][1] == {"role": "user", "content": "Three tips, please."}
    del asked.body["messages"]
    assert asked.body == {"model": "org/served", "temperature": 0.7, "seed": 11, "max_tokens": 24, "stream": False}


def test_a_schema_is_sent_as_the_response_format(stand_in: StandIn, engine: OpenAICompatibleEngine) -> None:
    stand_in.on("/v1/chat/completions", Reply(COMPLETION))
    engine.generate(a_request("openai/small", json_schema=SCORE_SCHEMA))
    assert stand_in.asked[0].body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": SCORE_SCHEMA, "strict": True},
    }


def test_without_a_key_none_is_sent(stand_in: StandIn) -> None:
    stand_in.on("/v1/chat/completions", Reply(COMPLETION))
    engine = OpenAICompatibleEngine(f"{stand_in.url}/v1", "", timeout_s=5)
    engine.generate(a_request("openai/small"))
    engine.close()
    assert "Authorization" not in stand_in.asked[0].headers


def test_describe(stand_in: StandIn, engine: OpenAICompatibleEngine) -> None:
    stand_in.on("/v1/models", Reply(LISTED))
    small = engine.describe("openai/small")
    assert (small.parameters, small.parameters_from, small.context_length) == (1_500_000_000, "metadata", 32_768)
    served = engine.describe("openai/org/served")
    assert (served.parameters, served.parameters_from, served.context_length) == (None, "unknown", 4096)
    with pytest.raises(ModelMissing, match=r"openai/large: .* it has openai/small, openai/org/served"):
        engine.describe("openai/large")


@pytest.mark.parametrize("told", [None, 0, -1, "7B", float("nan")])
def test_a_size_that_makes_no_sense_is_unknown(stand_in: StandIn, engine: OpenAICompatibleEngine, told: Any) -> None:
    stand_in.on("/v1/models", Reply({"data": [{"id": "odd", "meta": {"n_params": told}}]}))
    assert (engine.describe("openai/odd").parameters, engine.models()[0].parameters_from) == (None, "unknown")


@pytest.mark.parametrize("listed", [{}, {"data": None}, {"data": ["a"]}, {"data": [{"id": "b", "meta": "large"}]}])
def test_odd_lists_of_models(stand_in: StandIn, engine: OpenAICompatibleEngine, listed: Any) -> None:
    stand_in.on("/v1/models", Reply(listed))
    with pytest.raises(ModelMissing):
        engine.describe("openai/a")


def test_an_unknown_size_is_refused_unless_the_limit_is_lifted(
    stand_in: StandIn, engine: OpenAICompatibleEngine
) -> None:
    stand_in.on("/v1/models", Reply(LISTED))
    with pytest.raises(
        Problems, match=r"its size is unknown \(openai does not say\).*0 removes the limit \(max_model_b\)"
    ):
        admit(["openai/org/served"], lambda _model: engine, 4.0)
    [info] = admit(["openai/org/served"], lambda _model: engine, 0)
    assert info.billions is None


def test_nothing_is_ever_unloaded(stand_in: StandIn, engine: OpenAICompatibleEngine) -> None:
    engine.unload("openai/small")
    assert engine.resident() == []
    assert stand_in.asked == []


@pytest.mark.parametrize("status", [401, 403])
def test_refused_without_the_right_key(stand_in: StandIn, engine: OpenAICompatibleEngine, status: int) -> None:
    stand_in.on("/v1/models", Reply({"error": {"message": f"bad key {KEY}"}}, status))
    stand_in.on("/v1/chat/completions", Reply({"error": {"message": f"bad key {KEY}"}}, status))
    with pytest.raises(EngineUnreachable, match="TIPBENCH_OPENAI_KEY") as listing:
        engine.describe("openai/small")
    with pytest.raises(GenerationFailed, match="bad key …") as generating:
        engine.generate(a_request("openai/small"))
    assert KEY not in f"{listing.value} {generating.value}"


def test_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tipbench.bench.engines.http.PAUSES_S", ())
    engine = OpenAICompatibleEngine(f"{free_address()}/v1", KEY, timeout_s=1)
    with pytest.raises(EngineUnreachable, match="TIPBENCH_OPENAI_URL") as caught:
        engine.models()
    engine.close()
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "reply", [{}, {"choices": []}, {"choices": None}, {"choices": [{}]}, {"choices": [{"message": "x"}]}]
)
def test_a_completion_without_a_message(reply: dict[str, Any]) -> None:
    with pytest.raises(GenerationFailed, match="contains no message"):
        read_completion(reply, 1.0)


def test_reasoning_is_kept_and_odd_figures_are_not() -> None:
    message = {"content": None, "reasoning_content": "Hm."}
    made = read_completion(
        {"choices": [{"message": message}], "usage": {"prompt_tokens": "9"}, "timings": {"predicted_ms": 1500}},
        9.0,
        0.1,
    )
    assert (made.text, made.finish_reason, made.prompt_tokens) == ("<think>Hm.</think>", "unknown", None)
    assert (made.generate_s, made.load_s) == (1.5, 0.1)
    assert read_completion({**COMPLETION, "usage": 1, "timings": None}, 9.0).generate_s == 9.0
