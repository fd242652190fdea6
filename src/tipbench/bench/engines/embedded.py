"""llama.cpp in this process: a real model without a server. It holds one model at a time.

A model stays loaded for all its cells: reloading it for each call would cost more than it saves, since nothing else can
load a second model in this process.
"""

import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tipbench.bench.engines.gguf import file_digest, read_gguf
from tipbench.bench.engines.interface import CONTEXT_TOKENS, IN_PROCESS, bare_name
from tipbench.bench.engines.openai_compatible import read_completion, response_format
from tipbench.bench.engines.weights import KNOWN, weights_path
from tipbench.bench.records import Generation, GenerationRequest, ModelInfo, ResidentModel
from tipbench.core.errors import EngineError, GenerationFailed, MissingExtra, ModelMissing
from tipbench.core.untrusted import printable

DEFAULT_MODEL = "embedded/smollm2:135m"


class EmbeddedEngine:
    """Runs the models under `TIPBENCH_HOME/weights`, and any GGUF file given by path."""

    name = "embedded"
    default_concurrency = 1
    exclusive = True
    address = IN_PROCESS
    offered = True
    advice = f"run 'tipbench pull {bare_name(DEFAULT_MODEL, name)}'"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loaded: tuple[str, Any] | None = None
        self._lock = threading.Lock()
        self._described: dict[str, ModelInfo] = {}

    def describe(self, model: str) -> ModelInfo:
        _llama_cpp()
        if model not in self._described:
            path = self._path(model)
            facts = read_gguf(path)
            self._described[model] = ModelInfo(
                name=model,
                engine=self.name,
                parameters=facts.parameters,
                parameters_from="metadata",
                digest=file_digest(path),
                size_bytes=path.stat().st_size,
                quantization=facts.quantization,
                context_length=facts.context_length,
                context_bytes_a_token=facts.context_bytes_a_token,
            )
        return self._described[model]

    def models(self) -> list[ModelInfo]:
        _llama_cpp()
        return [self.describe(f"embedded/{name}") for name in KNOWN if weights_path(self._folder, name).is_file()]

    def generate(self, request: GenerationRequest) -> Generation:
        with self._lock:
            return self._generate(request)

    def _generate(self, request: GenerationRequest) -> Generation:
        server, load_s = self._load(request.model)
        started = time.monotonic()
        body = {
            "messages": [{"role": m.role, "content": m.content} for m in request.messages],
            "temperature": request.temperature,
            "seed": request.seed,
            "max_tokens": request.max_tokens,
            "cache_prompt": False,  # or an answer would depend on the previous request
            **response_format(request),
        }
        try:
            reply = server.handle_chat_completions(body)
        except (RuntimeError, ValueError) as error:  # ValueError: a JSON schema that can't become a grammar
            raise GenerationFailed(f"llama.cpp refused the request: {printable(str(error), 300)}") from error
        if "error" in reply:
            raise GenerationFailed(f"llama.cpp refused the request: {printable(str(reply['error']), 300)}")
        return read_completion(reply, time.monotonic() - started, load_s)

    def unload(self, model: str) -> None:
        if self._loaded and self._loaded[0] == model:
            self._loaded = None

    def resident(self) -> list[ResidentModel]:
        return [ResidentModel(self._loaded[0])] if self._loaded else []

    def same_model(self, one: str, other: str) -> bool:
        return one == other

    def close(self) -> None:
        self._loaded = None

    def _path(self, model: str) -> Path:
        name = bare_name(model, self.name)
        if name.endswith(".gguf"):
            path = Path(name)
            with suppress(RuntimeError):  # the home folder of an unknown user
                path = path.expanduser()
            if not path.is_file():
                raise ModelMissing(f"{model}: there is no file {path}")
            return path
        path = weights_path(self._folder, name)
        if name not in KNOWN:
            raise ModelMissing(f"{model}: unknown; use one of {', '.join(KNOWN)}, or the path of a .gguf file")
        if not path.is_file():
            raise ModelMissing(f"{model}: its weights are not installed; run 'tipbench pull {name}'")
        return path

    def _load(self, model: str) -> tuple[Any, float]:
        if self._loaded and self._loaded[0] == model:
            return self._loaded[1], 0.0
        self._loaded = None  # free the old model before loading the new one
        info = self.describe(model)
        llama_cpp = _llama_cpp()
        params = llama_cpp.CommonParams()
        params.model.path = str(self._path(model))
        params.n_ctx = min(CONTEXT_TOKENS, info.context_length or CONTEXT_TOKENS)
        params.n_parallel = 1
        params.verbosity = -1
        params.warmup = False
        started = time.monotonic()
        try:
            server = llama_cpp.Server(params)
        except RuntimeError as error:
            raise EngineError(f"{model}: llama.cpp can't load it: {error}") from error
        self._loaded = (model, server)
        return server, time.monotonic() - started


def _llama_cpp() -> Any:
    try:
        import xllamacpp
    except ImportError as error:
        raise MissingExtra(
            f"embedded/ models need llama.cpp; install it with: pip install 'tipbench[embedded]' ({error})"
        ) from error
    return xllamacpp
