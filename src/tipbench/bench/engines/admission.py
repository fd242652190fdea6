"""Admission of models: all unusable ones are refused in one message, before the first generation."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import psutil

from tipbench.bench.engines.interface import CONTEXT_TOKENS, Engine
from tipbench.bench.records import ModelInfo
from tipbench.core.errors import EngineUnreachable, ModelMissing, Problems

_BYTES_PER_CACHE_VALUE = 2  # llama.cpp and Ollama store keys and values as 16-bit floats
_COMPUTE_BYTES = 150e6  # compute buffers; a real Ollama reported 104 MB for a model of 135 million parameters
_GIB = 2**30
_SIZE_IN_NAME = re.compile(r"(?<![a-z0-9.])(\d{1,9}(?:\.\d{1,9})?)\s*([bm])(?![a-z0-9])", re.IGNORECASE)
_BILLIONS_IN_NAME = re.compile(r"(?<![a-z0-9.])(\d{1,3}x)?(\d{1,6}(?:\.\d{1,6})?)b(?![a-z0-9])", re.IGNORECASE)
_REFUSED = "these models can't be used, so nothing was generated:"


# Memory estimate of a loaded model: its weights, the context and the engine's buffers.


@dataclass(frozen=True)
class Footprint:
    """Estimated memory of a loaded model, in bytes."""

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
    """Estimate the memory that the model takes; None if the engine does not report its size."""
    if info.size_bytes is None:
        return None
    tokens = min(CONTEXT_TOKENS, info.context_length or CONTEXT_TOKENS)
    return Footprint(info.size_bytes, tokens * (info.context_bytes_a_token or 0), _COMPUTE_BYTES)


def context_bytes_a_token(metadata: Mapping[str, Any]) -> int | None:
    """Compute the context's bytes per token from GGUF metadata: a key and a value per layer and key/value head."""
    architecture = metadata.get("general.architecture")

    def number(name: str) -> int | None:
        value = metadata.get(f"{architecture}.{name}")
        return value if isinstance(value, int) and 0 < value < 10**7 else None

    layers, heads, width = number("block_count"), number("attention.head_count"), number("embedding_length")
    if not (layers and heads and width):
        return None
    size = number("attention.key_length") or width // heads
    return 2 * layers * (number("attention.head_count_kv") or heads) * size * _BYTES_PER_CACHE_VALUE


def free_memory(engine: Engine) -> int | None:
    """Return the free memory where the engine runs, in bytes; None if that is another machine."""
    host = urlsplit(engine.address).hostname if engine.address.startswith("http") else "localhost"
    if host not in ("localhost", "127.0.0.1", "::1"):
        return None
    return int(psutil.virtual_memory().available)


def memory_refusal(info: ModelInfo, free: int | None) -> str | None:
    """Return why the model can't be loaded now, with the figures; None if it fits or that is unknown."""
    needed = footprint(info)
    if needed is None or free is None or needed.total <= free:
        return None
    return (
        f"{info.name}: needs about {needed}, and {free / _GIB:.2f} GiB of memory are free; close other programs or use "
        "a smaller model (with a GPU that can hold it, set TIPBENCH_MEMORY_CHECK=false)"
    )


def parameters_from_name(name: str) -> int | None:
    """Return the number of parameters that a name like `qwen2.5:1.5b` states, or None."""
    match = _SIZE_IN_NAME.search(name)
    if not match:
        return None
    return round(float(match[1]) * (1e9 if match[2].lower() == "b" else 1e6)) or None


def admit(
    models: Sequence[str], engine_of: Callable[[str], Engine], max_model_b: float, check_memory: bool = True
) -> list[ModelInfo]:
    """Describe the models; raise Problems if any is missing, too large, of unknown size or beyond free memory.

    A missing model whose name says that it is too large is refused for that: nobody should install it first.
    """
    admitted, problems = [], []
    for model in models:
        try:
            info = engine_of(model).describe(model)
        except ModelMissing as error:
            problems.append(_refusal_by_name(model, max_model_b) or str(error))
            continue
        except EngineUnreachable:
            by_name = [refusal for one in models if (refusal := _refusal_by_name(one, max_model_b))]
            if by_name:
                raise Problems(_REFUSED, by_name) from None
            raise
        refusal = _refusal(info, max_model_b)
        if check_memory and not refusal:
            refusal = memory_refusal(info, free_memory(engine_of(model)))
        if refusal:
            problems.append(refusal)
        admitted.append(info)
    problems += _same_weights(admitted)
    if problems:
        raise Problems(_REFUSED, problems)
    return admitted


def _same_weights(models: Sequence[ModelInfo]) -> list[str]:
    """Report models named twice: their cells would share keys, and the second name would look as if it had failed."""
    first: dict[tuple[str, str], str] = {}
    return [
        f"{model.name}: is the same model as {first[model.engine, model.digest]}; name it once"
        for model in models
        if model.digest and first.setdefault((model.engine, model.digest), model.name) != model.name
    ]


def _refusal(info: ModelInfo, max_model_b: float) -> str | None:
    if max_model_b == 0:
        return None
    if info.billions is None:
        return _refusal_by_name(info.name, max_model_b) or (
            f"{info.name}: its size is unknown ({info.engine} does not say), so it can't be checked against the limit "
            f"of {max_model_b:g} billion; 0 removes the limit (max_model_b)"
        )
    if info.billions > max_model_b:
        source = "by its name, since the engine does not say" if info.parameters_from == "name" else "by its metadata"
        return _too_large(info.name, f"{info.billions:.2f}", source, max_model_b)
    return None


def _refusal_by_name(model: str, max_model_b: float) -> str | None:
    """Return why a model of unknown size can't be used, if its name says so; None if the name leaves it open.

    Names lie, so this is lenient: of several sizes the smallest counts, and of a mixture such as 8x7b one expert.
    """
    found = _BILLIONS_IN_NAME.findall(model.rpartition("/")[2])
    if max_model_b == 0 or not found:
        return None
    mixture, size = min(found, key=lambda match: float(match[1]))
    if float(size) <= max_model_b:
        return None
    return _too_large(model, f"{'more than ' if mixture else ''}{size}", "by its name", max_model_b)


def _too_large(model: str, billions: str, source: str, max_model_b: float) -> str:
    return (
        f"{model}: {billions} billion parameters ({source}) is over the limit of {max_model_b:g} billion; use a "
        "smaller model, or raise the limit if the machine has enough memory (max_model_b)"
    )
