"""The engines on what they are made for: a real Ollama, a real llama.cpp server, real weights."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import xllamacpp

from tests.bench.engines.stand_in import SCORE_SCHEMA, a_request
from tests.integration.real_ollama.server import MODELS, OllamaServer, default_cache, unsupported_reason
from tipbench.bench.engines.admission import admit, footprint
from tipbench.bench.engines.gguf import GgufFacts, file_digest, read_gguf
from tipbench.bench.engines.ollama import OllamaEngine
from tipbench.bench.engines.openai_compatible import OpenAICompatibleEngine
from tipbench.bench.engines.weights import KNOWN
from tipbench.core.errors import EngineError, ModelMissing


def test_the_real_weights(weights_file: Path) -> None:
    assert read_gguf(weights_file) == GgufFacts(134_515_008, "Q4_1", 8192, 23_040)
    assert file_digest(weights_file) == KNOWN["smollm2:135m"].sha256


def test_the_estimate_is_near_what_a_real_ollama_reports() -> None:
    if reason := unsupported_reason():
        pytest.skip(reason)
    with OllamaServer.start(default_cache()) as server:
        engine = OllamaEngine(server.url, 60.0)
        estimate = footprint(engine.describe("smollm2:135m"))
        engine.close()
        body = {"model": "smollm2:135m", "prompt": "x", "stream": False, "options": {"num_ctx": 4096, "num_predict": 1}}
        request = urllib.request.Request(f"{server.url}/api/generate", json.dumps(body).encode())
        urllib.request.urlopen(request, timeout=60).close()
        with urllib.request.urlopen(f"{server.url}/api/ps", timeout=10) as reply:
            reported = json.load(reply)["models"][0]["size"]
    assert estimate is not None
    assert 0.6 < estimate.total / reported < 1.6


@pytest.fixture(scope="module")
def server() -> Iterator[OllamaServer]:
    with OllamaServer.start(default_cache()) as running:
        yield running


@pytest.mark.skipif(unsupported_reason() is not None, reason=str(unsupported_reason()))
class TestRealServer:
    @pytest.fixture
    def real(self, server: OllamaServer) -> Iterator[OllamaEngine]:
        made = OllamaEngine(server.url, timeout_s=60)
        yield made
        made.close()

    @pytest.mark.parametrize("name", ["smollm2:135m", "SmolLM2:135M", "library/smollm2:135m"])
    def test_describe(self, real: OllamaEngine, name: str) -> None:
        info = real.describe(name)
        assert (info.name, info.parameters, info.parameters_from) == (name, 49_552_704, "metadata")
        assert (info.quantization, info.context_length) == ("Q4_1", 8192)
        assert info.digest
        assert info.size_bytes
        assert info.size_bytes > 40_000_000

    def test_models_and_missing_ones(self, real: OllamaEngine) -> None:
        assert set(MODELS) <= {info.name for info in real.models()}
        for name in ("nobody:1b", "../nobody"):
            with pytest.raises(ModelMissing):
                real.describe(name)

    def test_generate_leaves_nothing_in_memory(self, real: OllamaEngine) -> None:
        for name in ("smollm2:135m", "smollm2:135m-b"):
            made = real.generate(a_request(name, max_tokens=8))
            assert made.finish_reason in ("stop", "length")
            assert made.output_tokens is not None
            assert 1 <= made.output_tokens <= 8
            assert made.load_s is not None
            assert made.load_s > 0
            real.unload(name)
            assert real.resident() == []

    def test_an_answer_keeps_to_its_schema(self, real: OllamaEngine) -> None:
        made = real.generate(a_request("smollm2:135m", "Tell me a story.", max_tokens=64, json_schema=SCORE_SCHEMA))
        assert json.loads(made.text)["score"] in (1, 2, 3)
        real.unload("smollm2:135m")

    @pytest.mark.parametrize("name", ["smollm2:135m", "SmolLM2:135M", "library/smollm2:135m"])
    def test_unload_of_a_model_that_somebody_left_there(
        self, server: OllamaServer, real: OllamaEngine, name: str
    ) -> None:
        server.call("/api/generate", {"model": "smollm2:135m", "keep_alive": "5m"})
        assert [transaction.name for transaction in real.resident()] == ["smollm2:135m"]
        real.unload(name)
        assert real.resident() == []


@pytest.fixture(scope="module")
def llama_cpp_url(weights_file: Path) -> Iterator[str]:
    params = xllamacpp.CommonParams()
    params.model.path = str(weights_file)
    params.model_alias = ["smollm2"]
    params.n_ctx, params.n_parallel, params.verbosity, params.warmup = 1024, 1, -1, False
    params.hostnames, params.port = ["127.0.0.1"], 0
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server


def test_a_real_llama_cpp_server(llama_cpp_url: str) -> None:
    engine = OpenAICompatibleEngine(llama_cpp_url, "", timeout_s=60)
    try:
        [info] = admit(["openai/smollm2"], lambda _model: engine, 4.0)
        assert (info.parameters, info.parameters_from, info.context_length) == (134_515_008, "metadata", 8192)
        made = engine.generate(a_request("openai/smollm2", max_tokens=12))
        assert made.text
        assert made.finish_reason in ("stop", "length")
        assert made.output_tokens is not None
        assert 1 <= made.output_tokens <= 12
        shaped = engine.generate(a_request("openai/smollm2", max_tokens=64, json_schema=SCORE_SCHEMA))
        assert json.loads(shaped.text)["score"] in (1, 2, 3)
        with pytest.raises(EngineError, match="exceeds the available context size"):
            engine.generate(a_request("openai/smollm2", "word " * 2000))
    finally:
        engine.close()
