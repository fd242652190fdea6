"""Any server with an OpenAI-compatible chat API: llama.cpp's server, vLLM, LM Studio.

Such servers manage their models themselves: there is nothing to unload, and most don't report a model's size.
"""

import time
from typing import Any

from tipbench.bench.engines.http import EngineHttp, amount, mapping, whole_number
from tipbench.bench.engines.interface import bare_name
from tipbench.bench.records import Generation, GenerationRequest, ModelInfo, ResidentModel
from tipbench.core.errors import EngineUnreachable, GenerationFailed, ModelMissing


class OpenAICompatibleEngine:
    """One OpenAI-compatible server."""

    name = "openai"
    default_concurrency = 16
    exclusive = False
    advice = "load a model on that server"

    def __init__(self, url: str, key: str, timeout_s: float, offered: bool = True) -> None:
        self.offered = offered
        advice = "start the server, or set TIPBENCH_OPENAI_URL to its base URL (it usually ends in /v1)"
        self._http = EngineHttp(url, "the OpenAI-compatible server", advice, timeout_s, key)
        self.address = self._http.address

    def describe(self, model: str) -> ModelInfo:
        listed = {info.name: info for info in self.models()}
        if model not in listed:
            available = ", ".join(listed) or "none"
            raise ModelMissing(f"{model}: the server at {self.address} does not have it; it has {available}")
        return listed[model]

    def models(self) -> list[ModelInfo]:
        response = self._http.get("/models")
        if response.status_code in (401, 403):
            raise EngineUnreachable(f"{self.address} refuses access ({response.status_code}); set TIPBENCH_OPENAI_KEY")
        entries = self._http.json(response).get("data") or []
        return [_model_info(entry) for entry in entries if isinstance(entry, dict)]

    def generate(self, request: GenerationRequest) -> Generation:
        body = {
            "model": bare_name(request.model, self.name),
            "messages": [{"role": m.role, "content": m.content} for m in request.messages],
            "temperature": request.temperature,
            "seed": request.seed,
            "max_tokens": request.max_tokens,
            "stream": False,
            **response_format(request),
        }
        started = time.monotonic()
        reply = self._http.json(self._http.post("/chat/completions", body, generation=True), generation=True)
        return read_completion(reply, time.monotonic() - started)

    def unload(self, model: str) -> None:
        """Do nothing: the server decides which models it holds."""

    def resident(self) -> list[ResidentModel]:
        return []

    def same_model(self, one: str, other: str) -> bool:
        return one == other

    def close(self) -> None:
        self._http.close()


def response_format(request: GenerationRequest) -> dict[str, Any]:
    """Return the part of a request body that asks for JSON by a schema; empty if the answer is free text."""
    if request.json_schema is None:
        return {}
    schema = {"name": "answer", "schema": request.json_schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def read_completion(reply: dict[str, Any], elapsed_s: float, load_s: float | None = None) -> Generation:
    """Read a chat completion in OpenAI's format, with the exact timings that llama.cpp adds."""
    try:
        choice = reply["choices"][0]
        message = choice["message"]
        content = message.get("content") or ""
        thinking = message.get("reasoning_content") or ""
        text = f"<think>{thinking}</think>{content}" if thinking else str(content)
    except (KeyError, IndexError, TypeError, AttributeError):
        raise GenerationFailed("the server's reply contains no message, so it is not a chat completion") from None
    usage = mapping(reply.get("usage"))
    generate_ms = amount(mapping(reply.get("timings")).get("predicted_ms"))
    return Generation(
        text=text,
        finish_reason=str(choice.get("finish_reason") or "unknown"),
        prompt_tokens=whole_number(usage.get("prompt_tokens")),
        output_tokens=whole_number(usage.get("completion_tokens")),
        load_s=load_s,
        generate_s=elapsed_s if generate_ms is None else generate_ms / 1000,
    )


def _model_info(entry: dict[str, Any]) -> ModelInfo:
    """Describe a listed model: llama.cpp's server reports its size in `meta`, vLLM its context in `max_model_len`."""
    meta = mapping(entry.get("meta"))
    parameters = whole_number(meta.get("n_params")) or None
    return ModelInfo(
        name=f"openai/{entry.get('id')}",
        engine="openai",
        parameters=parameters,
        parameters_from="metadata" if parameters else "unknown",
        size_bytes=whole_number(meta.get("size")),
        context_length=whole_number(meta.get("n_ctx_train")) or whole_number(entry.get("max_model_len")),
    )
