"""The catalog of engines by name. An engine's module is imported only when the engine is used."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tipbench.bench.defaults import environment_ollama_url
from tipbench.bench.engines.interface import Engine
from tipbench.bench.options import Options
from tipbench.bench.records import ModelInfo
from tipbench.core.errors import InvalidInput, TipbenchError
from tipbench.core.paths import weights_folder
from tipbench.core.settings import Settings

DEFAULT_ENGINE = "ollama"  # for model names without a prefix


def _ollama(options: Options, settings: Settings) -> Engine:
    from tipbench.bench.engines.ollama import OllamaEngine

    if len(options.ollama_urls) > 1:
        raise InvalidInput(f"ollama_url names several endpoints ({options.ollama_url}); a run on one machine uses one")
    # Commands and the server set it; in Python code it may be left to the environment.
    by_environment = None if "ollama_url" in options.model_fields_set else environment_ollama_url(settings)
    url = by_environment or options.ollama_url
    return OllamaEngine(url, settings.engine_timeout_s, hold=options.unload == "model")


def _openai(options: Options, settings: Settings) -> Engine:  # noqa: ARG001 - all openers share one signature
    from tipbench.bench.engines.openai_compatible import OpenAICompatibleEngine

    url, key = settings.get("TIPBENCH_OPENAI_URL"), settings.get("TIPBENCH_OPENAI_KEY")
    is_set_up = bool(key) or settings.is_set("TIPBENCH_OPENAI_URL")
    return OpenAICompatibleEngine(url, key, settings.engine_timeout_s, offered=is_set_up)


def _embedded(options: Options, settings: Settings) -> Engine:  # noqa: ARG001
    from tipbench.bench.engines.embedded import EmbeddedEngine

    return EmbeddedEngine(weights_folder(settings.home))


def _scripted(options: Options, settings: Settings) -> Engine:  # noqa: ARG001
    from tipbench.bench.engines.scripted import ScriptedEngine

    return ScriptedEngine()


CATALOG: Mapping[str, Callable[[Options, Settings], Engine]] = {
    "ollama": _ollama,
    "embedded": _embedded,
    "openai": _openai,
    "scripted": _scripted,
}


def engine_name(model: str) -> str:
    """Return the engine of a model; a name without an engine's prefix is an Ollama tag, even if it contains slashes."""
    prefix, slash, _ = model.partition("/")
    return prefix if slash and prefix in CATALOG else DEFAULT_ENGINE


@dataclass(frozen=True)
class EngineModels:
    """An engine and its models."""

    engine: str
    address: str
    models: Sequence[ModelInfo]
    problem: str = ""  # why its models can't be listed
    advice: str = ""  # what to do if it has no models


class Engines:
    """The engines of one run, each opened on first use."""

    def __init__(self, options: Options, settings: Settings) -> None:
        self._options = options
        self._settings = settings
        self._open: dict[str, Engine] = {}

    def named(self, name: str) -> Engine:
        if name not in self._open:
            self._open[name] = CATALOG[name](self._options, self._settings)
        return self._open[name]

    def of(self, model: str) -> Engine:
        return self.named(engine_name(model))

    def offered(self) -> Iterator[EngineModels]:
        """Yield the engines that a user may choose from, one by one: listing the models of each takes time."""
        for name in CATALOG:
            models = self.models_of(name)
            if models:
                yield models

    def models_of(self, name: str) -> EngineModels | None:
        """Return an engine with its models or its problem; None if the engine is not offered."""
        try:
            engine = self.named(name)
        except TipbenchError as error:
            return EngineModels(name, "", (), str(error))
        if not engine.offered:
            return None
        try:
            return EngineModels(name, engine.address, engine.models(), advice=engine.advice)
        except TipbenchError as error:
            return EngineModels(name, engine.address, (), str(error))

    def close(self) -> None:
        for engine in self._open.values():
            engine.close()
        self._open.clear()


@contextmanager
def open_engines(options: Options, settings: Settings) -> Iterator[Engines]:
    engines = Engines(options, settings)
    try:
        yield engines
    finally:
        engines.close()
