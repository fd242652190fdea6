"""The estimate of a model's memory, held against figures that are known and against a real Ollama."""

from dataclasses import replace

import pytest

from tests.integration.real_ollama.server import default_cache
from tipbench.bench.engines.admission import context_bytes_a_token, free_memory, memory_refusal
from tipbench.bench.engines.embedded import EmbeddedEngine
from tipbench.bench.engines.ollama import OllamaEngine
from tipbench.bench.records import ModelInfo

SMOLLM2 = {
    "general.architecture": "llama",
    "llama.block_count": 30,
    "llama.attention.head_count": 9,
    "llama.attention.head_count_kv": 3,
    "llama.embedding_length": 576,
}
MODEL = ModelInfo("m:3b", "ollama", 3_200_000_000, "metadata", "d", 2_000_000_000, "Q4_K_M", 131_072, 114_688)


def test_the_context_takes_a_key_and_a_value_for_each_layer_and_head() -> None:
    assert context_bytes_a_token(SMOLLM2) == 2 * 30 * 3 * 64 * 2
    assert context_bytes_a_token({**SMOLLM2, "llama.attention.key_length": 128}) == 2 * 30 * 3 * 128 * 2


@pytest.mark.parametrize("value", [None, 0, -1, "30", [30], 10**9])
def test_odd_metadata_gives_no_figure(value: object) -> None:
    assert context_bytes_a_token({**SMOLLM2, "llama.block_count": value}) is None
    assert context_bytes_a_token({}) is None


def test_a_model_that_does_not_fit_is_refused_with_the_figures() -> None:
    assert memory_refusal(MODEL, 4 * 2**30) is None
    refusal = memory_refusal(MODEL, 2 * 2**30)
    assert refusal is not None
    assert "m:3b: needs about 2.44 GiB (1.86 weights, 0.44 context, 0.14 buffers)" in refusal
    assert "2.00 GiB of memory are free" in refusal


def test_nobody_is_refused_on_a_guess() -> None:
    assert memory_refusal(replace(MODEL, size_bytes=None), 1) is None
    assert memory_refusal(MODEL, None) is None
    assert free_memory(OllamaEngine("http://gpu-box:11434", 1.0)) is None
    assert (free_memory(OllamaEngine("http://127.0.0.1:11434", 1.0)) or 0) > 0
    assert (free_memory(EmbeddedEngine(default_cache())) or 0) > 0
