"""How much memory a model will take once it is loaded: its weights, the context and what the engine adds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import psutil

from tipbench.bench.engines.interface import CONTEXT_TOKENS, Engine
from tipbench.bench.records import ModelInfo

_BYTES_A_CACHE_VALUE = 2  # llama.cpp and Ollama keep keys and values as 16-bit floats
_COMPUTE_BYTES = 150e6  # for the computation; a real Ollama reported 104 MB of it for a model of 135 million parameters
_GIB = 2**30


@dataclass(frozen=True)
class Footprint:
    """An estimate, in bytes."""

    weights: float
    context: float
    buffers: float

    @property
    def total(self) -> float:
        return self.weights + self.context + self.buffers

    def __str__(self) -> str:
        parts = (
            f"{self.weights / _GIB:.2f} weights, {self.context / _GIB:.2f} context, {self.buffers / _GIB:.2f} buffers"
        )
        return f"{self.total / _GIB:.2f} GiB ({parts})"


def footprint(info: ModelInfo) -> Footprint | None:
    """What loading the model takes; None where the engine does not tell its size."""
    if info.size_bytes is None:
        return None
    tokens = min(CONTEXT_TOKENS, info.context_length or CONTEXT_TOKENS)
    return Footprint(info.size_bytes, tokens * (info.context_bytes_a_token or 0), _COMPUTE_BYTES)


def context_bytes_a_token(facts: Mapping[str, Any]) -> int | None:
    """From a model's GGUF metadata: a key and a value for each layer and each key/value head."""
    architecture = facts.get("general.architecture")

    def number(name: str) -> int | None:
        value = facts.get(f"{architecture}.{name}")
        return value if isinstance(value, int) and 0 < value < 10**7 else None

    layers, heads, width = number("block_count"), number("attention.head_count"), number("embedding_length")
    if not (layers and heads and width):
        return None
    size = number("attention.key_length") or width // heads
    return 2 * layers * (number("attention.head_count_kv") or heads) * size * _BYTES_A_CACHE_VALUE


def free_memory(engine: Engine) -> int | None:
    """Free bytes where the engine runs; None where that is another machine."""
    host = urlsplit(engine.address).hostname if engine.address.startswith("http") else "localhost"
    if host not in ("localhost", "127.0.0.1", "::1"):
        return None
    return int(psutil.virtual_memory().available)


def memory_refusal(info: ModelInfo, free: int | None) -> str | None:
    """Why the model can't be loaded now, with the figures; None when it fits or nobody can tell."""
    needed = footprint(info)
    if needed is None or free is None or needed.total <= free:
        return None
    return (
        f"{info.name}: needs about {needed}, and {free / _GIB:.2f} GiB of memory are free; close something or take a "
        f"smaller model (TIPBENCH_MEMORY_CHECK=false, if a graphics card will hold it)"
    )
