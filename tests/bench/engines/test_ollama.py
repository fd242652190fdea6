"""Ollama: what is asked of it, what is read from its replies, and that models really leave memory."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.bench.engines.stand_in import SCORE_SCHEMA, Reply, StandIn, a_request, free_address
from tipbench.bench.engines import ollama
from tipbench.bench.engines.ollama import OllamaEngine
from tipbench.core.errors import EngineError, EngineUnreachable, GenerationFailed, ModelMissing

ANSWERED = {
    "message": {"role": "assistant", "content": "Close the door."},
    "done_reason": "stop",
    "prompt_eval_count": 40,
    "eval_count": 5,
    "load_duration": 700_000_000,
    "eval_duration": 250_000_000,
}
SHOWN = {
    "details": {"parameter_size": "9.24B", "quantization_level": "Q4_K_M"},
    "model_info": {"general.parameter_count": 9_241_705_984, "gemma2.context_length": 8192},
}
LISTED = {"models": [{"name": "tiny:1b", "digest": "abc", "size": 5_443_152_417}, {"name": "other:latest"}]}


@pytest.fixture
def engine(stand_in: StandIn) -> Iterator[OllamaEngine]:
    made = OllamaEngine(stand_in.url, timeout_s=5, sleep=lambda _seconds: None)
    yield made
    made.close()


def ps(*names: str) -> Reply:
    return Reply({"models": [{"name": name, "size": 800, "size_vram": 300} for name in names]})


def describe(stand_in: StandIn, engine: OllamaEngine, shown: Any, name: str = "tiny:1b") -> Any:
    stand_in.on("/api/show", Reply(shown))
    stand_in.on("/api/tags", Reply(LISTED))
    return engine.describe(name)


def test_generate(stand_in: StandIn, engine: OllamaEngine) -> None:
    stand_in.on("/api/chat", Reply(ANSWERED))
    made = engine.generate(a_request("ollama/tiny:1b"))
    assert (made.text, made.finish_reason) == ("Close the door.", "stop")
    assert (made.prompt_tokens, made.output_tokens, made.load_s, made.generate_s) == (40, 5, 0.7, 0.25)
    [body] = stand_in.bodies("/api/chat")
    assert (body["model"], body["stream"], body["keep_alive"]) == ("tiny:1b", False, 0)
    assert body["options"] == {"temperature": 0.7, "seed": 11, "num_predict": 24, "num_ctx": 4096}
    assert [message["role"] for message in body["messages"]] == ["system", "user"]


def test_a_schema_is_sent_as_the_format_and_none_as_nothing(stand_in: StandIn, engine: OllamaEngine) -> None:
    stand_in.on("/api/chat", Reply(ANSWERED))
    engine.generate(a_request("tiny:1b", json_schema=SCORE_SCHEMA))
    engine.generate(a_request("tiny:1b"))
    with_schema, without = stand_in.bodies("/api/chat")
    assert with_schema["format"] == SCORE_SCHEMA
    assert "format" not in without


def test_every_call_that_may_load_a_model_says_keep_alive_0(stand_in: StandIn, engine: OllamaEngine) -> None:
    stand_in.on("/api/chat", Reply({"error": "busy"}, 500), Reply(drops=True), Reply(ANSWERED))
    stand_in.on("/api/generate", Reply({"done_reason": "unload"}))
    stand_in.on("/api/ps", ps())
    engine.generate(a_request("tiny:1b"))
    engine.unload("tiny:1b")
    bodies = stand_in.bodies("/api/chat") + stand_in.bodies("/api/generate")
    assert [body["keep_alive"] for body in bodies] == [0, 0, 0, 0]
    assert "prompt" not in stand_in.bodies("/api/generate")[0]


def test_thinking_is_kept(stand_in: StandIn, engine: OllamaEngine) -> None:
    message = {"role": "assistant", "content": '["A."]', "thinking": "Hm, doors."}
    stand_in.on("/api/chat", Reply({**ANSWERED, "message": message}))
    assert engine.generate(a_request("tiny:1b")).text == '<think>Hm, doors.</think>["A."]'


@pytest.mark.parametrize(
    "reply",
    [{}, {"message": None}, {"message": "text"}, {"message": {"role": "assistant"}}, {"message": {"content": 1}}],
)
def test_a_reply_without_a_message(stand_in: StandIn, engine: OllamaEngine, reply: Any) -> None:
    stand_in.on("/api/chat", Reply(reply))
    with pytest.raises(GenerationFailed, match="contains no message"):
        engine.generate(a_request("tiny:1b"))


def test_an_empty_answer_is_an_answer(stand_in: StandIn, engine: OllamaEngine) -> None:
    stand_in.on("/api/chat", Reply({"message": {"content": ""}, "eval_count": 0, "eval_duration": float("nan")}))
    made = engine.generate(a_request("tiny:1b"))
    assert (made.text, made.finish_reason, made.output_tokens, made.generate_s) == ("", "unknown", 0, None)


def test_a_model_that_is_gone_when_it_should_generate(stand_in: StandIn, engine: OllamaEngine) -> None:
    stand_in.on("/api/chat", Reply({"error": "model 'tiny:1b' not found"}, 404))
    with pytest.raises(GenerationFailed, match="answered 404: model 'tiny:1b' not found"):
        engine.generate(a_request("tiny:1b"))


def test_describe_goes_by_the_metadata_and_not_by_the_name(stand_in: StandIn, engine: OllamaEngine) -> None:
    info = describe(stand_in, engine, SHOWN)
    assert (info.parameters, info.parameters_from) == (9_241_705_984, "metadata")
    assert (info.digest, info.size_bytes) == ("abc", 5_443_152_417)
    assert (info.quantization, info.context_length) == ("Q4_K_M", 8192)


def test_describe_reads_the_rounded_size_where_there_is_no_count(stand_in: StandIn, engine: OllamaEngine) -> None:
    info = describe(stand_in, engine, {"details": SHOWN["details"]})
    assert (info.parameters, info.parameters_from) == (9_240_000_000, "metadata")


@pytest.mark.parametrize("count", [None, 0, -5, "many", float("nan")])
def test_describe_falls_back_to_the_name_and_says_so(stand_in: StandIn, engine: OllamaEngine, count: Any) -> None:
    info = describe(stand_in, engine, {"model_info": {"general.parameter_count": count}})
    assert (info.parameters, info.parameters_from) == (1_000_000_000, "name")


def test_what_a_server_calls_digest_and_quantization_is_fit_for_a_store(
    stand_in: StandIn, engine: OllamaEngine
) -> None:
    stand_in.on("/api/tags", Reply({"models": [{"name": "tiny:1b", "digest": "a\x00b\ud83d" + "c" * 9_000}]}))
    stand_in.on("/api/show", Reply({"details": {"quantization_level": ["Q4"]}}))
    info = engine.describe("tiny:1b")
    assert info.digest is not None
    assert info.digest.startswith("a\\u0000b\\ud83dccc")
    assert len(info.digest) < 300
    assert info.quantization is None


def test_describe_of_a_model_of_unknown_size(stand_in: StandIn, engine: OllamaEngine) -> None:
    info = describe(stand_in, engine, {}, name="other")
    assert (info.parameters, info.parameters_from, info.digest) == (None, "unknown", None)


@pytest.mark.parametrize(
    "refusal", [Reply({"error": "model 'x' not found"}, 404), Reply({"error": "invalid model path"}, 500)]
)
def test_a_model_that_is_not_there(stand_in: StandIn, engine: OllamaEngine, refusal: Reply) -> None:
    stand_in.on("/api/show", refusal)
    with pytest.raises(ModelMissing, match=r"tiny:9b: Ollama at http.* run 'ollama pull tiny:9b'"):
        engine.describe("tiny:9b")


def test_models(stand_in: StandIn, engine: OllamaEngine) -> None:
    describe(stand_in, engine, SHOWN)
    assert [info.name for info in engine.models()] == ["tiny:1b", "other:latest"]


@pytest.mark.parametrize("name", ["tiny:1b", "ollama/tiny:1b", "Tiny:1B", "library/tiny:1b"])
def test_unload_polls_until_the_model_is_gone(stand_in: StandIn, engine: OllamaEngine, name: str) -> None:
    stand_in.on("/api/generate", Reply({"done_reason": "unload"}))
    stand_in.on("/api/ps", ps("tiny:1b", "other:latest"), ps("tiny:1b"), ps("tiny:1b"), ps("other:latest"))
    engine.unload(name)
    assert len(stand_in.bodies("/api/ps")) == 4


def test_unload_knows_a_model_without_a_tag(stand_in: StandIn, engine: OllamaEngine) -> None:
    stand_in.on("/api/generate", Reply({"done_reason": "unload"}))
    stand_in.on("/api/ps", ps("other:latest"), ps())
    engine.unload("other")
    assert len(stand_in.bodies("/api/ps")) == 2


def test_a_model_that_will_not_leave(stand_in: StandIn, engine: OllamaEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ollama, "_UNLOAD_LIMIT_S", 0.1)
    stand_in.on("/api/generate", Reply({"done_reason": "unload"}))
    stand_in.on("/api/ps", ps("tiny:1b"))
    with pytest.raises(EngineError, match=r"still in the memory .* 'ollama stop tiny:1b'"):
        engine.unload("tiny:1b")


def test_unloading_an_unknown_model_is_no_error_and_any_other_refusal_is(
    stand_in: StandIn, engine: OllamaEngine
) -> None:
    stand_in.on("/api/ps", ps())
    stand_in.on("/api/generate", Reply({"error": "model not found"}, 404), Reply({"error": "denied"}, 403))
    engine.unload("tiny:1b")
    with pytest.raises(EngineError, match="does not unload tiny:1b: denied"):
        engine.unload("tiny:1b")


def test_resident(stand_in: StandIn, engine: OllamaEngine) -> None:
    stand_in.on("/api/ps", ps("tiny:1b"), Reply({"models": None}))
    [held] = engine.resident()
    assert (held.name, held.size_bytes, held.vram_bytes) == ("tiny:1b", 800, 300)
    assert engine.resident() == []


def test_no_server() -> None:
    engine = OllamaEngine(free_address(), timeout_s=1, sleep=lambda _seconds: None)
    with pytest.raises(EngineUnreachable, match="'ollama serve', or set its address"):
        engine.describe("tiny:1b")
    engine.close()
