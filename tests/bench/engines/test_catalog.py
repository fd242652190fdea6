"""Names to engines: opened when first asked for, once, and closed together."""

import subprocess
import sys

import pytest

from tipbench.bench.engines.catalog import CATALOG, Engines, engine_name, open_engines
from tipbench.bench.engines.embedded import EmbeddedEngine
from tipbench.bench.engines.interface import Engine
from tipbench.bench.engines.ollama import OllamaEngine
from tipbench.bench.engines.openai_compatible import OpenAICompatibleEngine
from tipbench.bench.engines.scripted import ScriptedEngine
from tipbench.bench.options import Options
from tipbench.core.errors import InvalidInput
from tipbench.core.settings import Settings

SETTINGS = Settings({"TIPBENCH_OPENAI_URL": "http://box:9/v1/", "TIPBENCH_HOME": "/nowhere"})


@pytest.mark.parametrize(
    ("model", "engine"),
    [
        ("qwen2.5:0.5b", "ollama"),
        ("ollama/qwen2.5:0.5b", "ollama"),
        ("hf.co/org/model:Q4", "ollama"),
        ("embedded", "ollama"),
        ("embedded/smollm2:135m", "embedded"),
        ("embedded//abs/file.gguf", "embedded"),
        ("openai/org/model", "openai"),
        ("scripted/a.yaml", "scripted"),
    ],
)
def test_the_engine_that_a_name_asks_for(model: str, engine: str) -> None:
    assert engine_name(model) == engine


@pytest.mark.parametrize(
    ("name", "kind", "address"),
    [
        ("ollama", OllamaEngine, "http://box:1"),
        ("openai", OpenAICompatibleEngine, "http://box:9/v1"),
        ("embedded", EmbeddedEngine, "in process"),
        ("scripted", ScriptedEngine, "in process"),
    ],
)
def test_engines_are_made_from_options_and_settings(name: str, kind: type, address: str) -> None:
    with open_engines(Options(ollama_url="http://box:1"), SETTINGS) as engines:
        engine: Engine = engines.named(name)
        assert isinstance(engine, kind)
        assert (engine.name, engine.address) == (name, address)
        assert engines.named(name) is engine


def test_every_engine_is_closed_even_after_an_error() -> None:
    closed = []

    class Noted(ScriptedEngine):
        def close(self) -> None:
            closed.append(self.name)

    def fails(engines: Engines) -> None:
        engines._open["scripted"] = Noted()
        raise KeyError("stop")

    with pytest.raises(KeyError), open_engines(Options(), SETTINGS) as engines:
        fails(engines)
    assert closed == ["scripted"]


def test_the_catalog_imports_no_engine() -> None:
    code = "import sys, tipbench.bench.engines.catalog; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "tipbench.bench.engines.catalog" in loaded
    assert not {"httpx", "xllamacpp", "tipbench.bench.engines.ollama", "tipbench.bench.engines.embedded"} & set(loaded)
    assert {"ollama", "openai", "embedded", "scripted"} <= set(CATALOG)


def test_a_run_on_one_machine_uses_one_ollama() -> None:
    with open_engines(Options(ollama_url="http://a:1,http://b:1"), SETTINGS) as engines:
        assert engines.of("scripted/x").name == "scripted"
        with pytest.raises(InvalidInput, match="several endpoints"):
            engines.of("qwen2.5:0.5b")
