"""Names to engines. An engine is imported only when a model asks for it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from tipbench.bench.engines.interface import Engine
from tipbench.bench.options import Options
from tipbench.core.errors import InvalidInput
from tipbench.core.paths import weights_folder
from tipbench.core.settings import Settings


def _ollama(options: Options, settings: Settings) -> Engine:
    from tipbench.bench.engines.ollama import OllamaEngine

    if len(options.ollama_urls) > 1:
        raise InvalidInput(f"ollama_url names several endpoints ({options.ollama_url}); a run on one machine uses one")
    return OllamaEngine(options.ollama_url, settings.engine_timeout_s, hold=options.unload == "model")


def _openai(options: Options, settings: Settings) -> Engine:  # noqa: ARG001 - one signature for all
    from tipbench.bench.engines.openai_compatible import OpenAICompatibleEngine

    return OpenAICompatibleEngine(
        settings.get("TIPBENCH_OPENAI_URL"), settings.get("TIPBENCH_OPENAI_KEY"), settings.engine_timeout_s
    )


def _embedded(options: Options, settings: Settings) -> Engine:  # noqa: ARG001
    from tipbench.bench.engines.embedded import EmbeddedEngine

    return EmbeddedEngine(weights_folder(settings.home))


def _scripted(options: Options, settings: Settings) -> Engine:  # noqa: ARG001
    from tipbench.bench.engines.scripted import ScriptedEngine

    return ScriptedEngine()


CATALOG: Mapping[str, Callable[[Options, Settings], Engine]] = {
    "ollama": _ollama,
    "openai": _openai,
    "embedded": _embedded,
    "scripted": _scripted,
}


def engine_name(model: str) -> str:
    """The engine that a model's name asks for; a bare name is an Ollama tag, slashes and all."""
    prefix, slash, _ = model.partition("/")
    return prefix if slash and prefix in CATALOG else "ollama"


class Engines:
    """The engines of one run, each opened once."""

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
