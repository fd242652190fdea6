"""Ollama, over its chat API. By default every call has `keep_alive=0`: the model is unloaded after each answer."""

import time
from collections.abc import Callable
from typing import Any

from tipbench.bench.engines.admission import context_bytes_a_token, parameters_from_name
from tipbench.bench.engines.http import EngineHttp, amount, error_text, mapping, short_text, whole_number
from tipbench.bench.engines.interface import CONTEXT_TOKENS, bare_name
from tipbench.bench.records import Generation, GenerationRequest, ModelInfo, ResidentModel
from tipbench.core.errors import EngineError, GenerationFailed, ModelMissing

_NANO = 1e9
_UNLOAD_LIMIT_S = 60.0
_POLL_S = 0.05
_HOLD_KEEP_ALIVE = "15m"  # longer than any pause between cells; bounded, in case nobody is left to unload the model


class OllamaEngine:
    """One Ollama server."""

    name = "ollama"
    default_concurrency = 1
    exclusive = True
    offered = True
    advice = "run 'ollama pull qwen2.5:0.5b'"

    def __init__(
        self, url: str, timeout_s: float, hold: bool = False, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._keep_alive: int | str = _HOLD_KEEP_ALIVE if hold else 0
        self._sleep = sleep
        advice = "start it with 'ollama serve', or set its address (ollama_url)"
        self._http = EngineHttp(url, "Ollama", advice, timeout_s, sleep=sleep)
        self.address = self._http.address

    def describe(self, model: str) -> ModelInfo:
        tag = bare_name(model, self.name)
        response = self._http.post("/api/show", {"model": tag})
        status = response.status_code
        if status in (400, 404) or (status >= 400 and "invalid model" in error_text(response)):
            raise ModelMissing(f"{model}: Ollama at {self.address} does not have it; run 'ollama pull {tag}'")
        shown = self._http.json(response)
        entries = self._models_at("/api/tags")
        listed = next((entry for entry in entries if self.same_model(str(entry.get("name")), tag)), {})
        return _model_info(model, shown, listed)

    def models(self) -> list[ModelInfo]:
        return [self.describe(str(entry.get("name"))) for entry in self._models_at("/api/tags")]

    def generate(self, request: GenerationRequest) -> Generation:
        body: dict[str, Any] = {
            "model": bare_name(request.model, self.name),
            "messages": [{"role": m.role, "content": m.content} for m in request.messages],
            "stream": False,
            "keep_alive": self._keep_alive,
            "options": {
                "temperature": request.temperature,
                "seed": request.seed,
                "num_predict": request.max_tokens,
                "num_ctx": CONTEXT_TOKENS,
            },
        }
        if request.json_schema is not None:
            body["format"] = request.json_schema
        reply = self._http.json(self._http.post("/api/chat", body, generation=True), generation=True)
        message = reply.get("message")
        if not isinstance(message, dict) or not isinstance(message.get("content"), str):
            raise GenerationFailed(f"the server at {self.address} is not an Ollama: its reply contains no message")
        thinking = message.get("thinking")
        text = f"<think>{thinking}</think>{message['content']}" if thinking else message["content"]
        return Generation(
            text=text,
            finish_reason=str(reply.get("done_reason") or "unknown"),
            prompt_tokens=whole_number(reply.get("prompt_eval_count")),
            output_tokens=whole_number(reply.get("eval_count")),
            load_s=_seconds(reply.get("load_duration")),
            generate_s=_seconds(reply.get("eval_duration")),
        )

    def unload(self, model: str) -> None:
        """Unload and poll until the model is gone: the server reports success while it still lists the model."""
        tag = bare_name(model, self.name)
        response = self._http.post("/api/generate", {"model": tag, "keep_alive": 0})
        if response.status_code >= 400 and response.status_code != 404:
            raise EngineError(f"Ollama at {self.address} does not unload {tag}: {error_text(response)}")
        waited = 0.0
        started = time.monotonic()
        while any(self.same_model(loaded.name, tag) for loaded in self.resident()):
            if max(waited, time.monotonic() - started) > _UNLOAD_LIMIT_S:
                raise EngineError(
                    f"{tag} is still in the memory of Ollama at {self.address} after {_UNLOAD_LIMIT_S:g} s; "
                    f"another client may be using it: 'ollama ps' shows it, 'ollama stop {tag}' ends it"
                )
            self._sleep(_POLL_S)
            waited += _POLL_S

    def resident(self) -> list[ResidentModel]:
        return [
            ResidentModel(str(e.get("name")), whole_number(e.get("size")) or 0, whole_number(e.get("size_vram")) or 0)
            for e in self._models_at("/api/ps")
        ]

    def same_model(self, one: str, other: str) -> bool:
        """Compare full names: `SmolLM2`, `library/smollm2` and `smollm2:latest` are one model.

        The server lists it by its short name.
        """
        return _full_name(one) == _full_name(other)

    def close(self) -> None:
        self._http.close()

    def _models_at(self, path: str) -> list[dict[str, Any]]:
        entries = self._http.json(self._http.get(path)).get("models") or []
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise GenerationFailed(f"the server at {self.address} is not an Ollama: {path} lists no models")
        return entries


def _model_info(model: str, shown: dict[str, Any], listed: dict[str, Any]) -> ModelInfo:
    details = mapping(shown.get("details"))
    metadata = mapping(shown.get("model_info"))
    reported = whole_number(metadata.get("general.parameter_count")) or parameters_from_name(
        str(details.get("parameter_size") or "")
    )
    from_name = parameters_from_name(model)
    context = next((value for key, value in metadata.items() if key.endswith(".context_length")), None)
    return ModelInfo(
        name=model,
        engine="ollama",
        parameters=reported or from_name,
        parameters_from="metadata" if reported else "name" if from_name else "unknown",
        digest=short_text(listed.get("digest")),
        size_bytes=whole_number(listed.get("size")),
        quantization=short_text(details.get("quantization_level")),
        context_length=whole_number(context),
        context_bytes_a_token=context_bytes_a_token(metadata),
    )


def _full_name(tag: str) -> str:
    name = tag.lower().removeprefix("registry.ollama.ai/").removeprefix("library/")
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"


def _seconds(nanoseconds: Any) -> float | None:
    reported = amount(nanoseconds)
    return None if reported is None else reported / _NANO
