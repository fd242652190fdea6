"""Which models may run at all: refused before the first generation, all of them in one message."""

import re
from collections.abc import Callable, Sequence

from tipbench.bench.engines.footprint import free_memory, memory_refusal
from tipbench.bench.engines.interface import Engine
from tipbench.bench.records import ModelInfo
from tipbench.core.errors import ModelMissing, Problems

_SIZE_IN_NAME = re.compile(r"(?<![a-z0-9.])(\d{1,9}(?:\.\d{1,9})?)\s*([bm])(?![a-z0-9])", re.IGNORECASE)


def parameters_from_name(name: str) -> int | None:
    """The number of parameters that a name like `qwen2.5:1.5b` claims."""
    match = _SIZE_IN_NAME.search(name)
    if not match:
        return None
    return round(float(match[1]) * (1e9 if match[2].lower() == "b" else 1e6)) or None


def admit(
    models: Sequence[str], engine_of: Callable[[str], Engine], max_model_b: float, check_memory: bool = True
) -> list[ModelInfo]:
    """What the models are; raises with every one that is missing, too large, of unknown size or beyond free memory."""
    admitted, problems = [], []
    for model in models:
        try:
            info = engine_of(model).describe(model)
        except ModelMissing as error:
            problems.append(str(error))
            continue
        refusal = _refusal(info, max_model_b)
        if check_memory and not refusal:
            refusal = memory_refusal(info, free_memory(engine_of(model)))
        if refusal:
            problems.append(refusal)
        admitted.append(info)
    problems += _same_weights(admitted)
    if problems:
        raise Problems("these models can't be used, so nothing was generated:", problems)
    return admitted


def _same_weights(models: Sequence[ModelInfo]) -> list[str]:
    """Two names of one model would be one cell by its key, and the second name would look as if it had failed."""
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
        return (
            f"{info.name}: its size is unknown ({info.engine} does not say), so it can't be held against "
            f"the limit of {max_model_b:g} billion; 0 lifts it (max_model_b)"
        )
    if info.billions > max_model_b:
        source = "by its name; the engine does not say" if info.parameters_from == "name" else "by its metadata"
        return (
            f"{info.name}: {info.billions:.2f} billion parameters ({source}) is over the limit of "
            f"{max_model_b:g} billion; take a smaller model, or raise it if the machine has the memory (max_model_b)"
        )
    return None
