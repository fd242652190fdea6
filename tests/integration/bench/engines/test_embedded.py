"""The embedded engine on a real model: what it says of it, repeatable answers, one model in memory at a time."""

import gc
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.bench.engines.gguf_files import STRING, entry, gguf, text
from tests.bench.engines.stand_in import SCORE_SCHEMA, a_request
from tipbench.bench.engines.embedded import DEFAULT_MODEL, EmbeddedEngine
from tipbench.bench.engines.weights import KNOWN
from tipbench.bench.records import Generation
from tipbench.core.errors import EngineError, GenerationFailed, MissingExtra, ModelMissing

MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def engine(weights_folder: Path) -> Iterator[EmbeddedEngine]:
    made = EmbeddedEngine(weights_folder)
    yield made
    made.close()


def ask(engine: EmbeddedEngine, text: str = "How do I start the day?", seed: int = 11) -> Generation:
    return engine.generate(a_request(DEFAULT_MODEL, text, seed=seed, temperature=1.0))


def test_describe(engine: EmbeddedEngine) -> None:
    info = engine.describe(DEFAULT_MODEL)
    assert (info.name, info.engine) == ("embedded/smollm2:135m", "embedded")
    assert (info.parameters, info.parameters_from) == (134_515_008, "metadata")
    assert info.digest == KNOWN["smollm2:135m"].sha256
    assert (info.quantization, info.context_length) == ("Q4_1", 8192)
    assert info.size_bytes
    assert 90 * MEGABYTE < info.size_bytes < 110 * MEGABYTE
    assert info in engine.models()


def test_the_same_weights_by_their_path(engine: EmbeddedEngine, weights_file: Path) -> None:
    assert engine.describe(f"embedded/{weights_file}").digest == engine.describe(DEFAULT_MODEL).digest


def test_the_same_seed_gives_the_same_text_whatever_was_asked_before(engine: EmbeddedEngine) -> None:
    first = ask(engine)
    again = ask(engine)
    ask(engine, "Name three rivers, and then three mountains.", seed=5)
    ask(engine, "How do I start the evening?", seed=6)
    after_others = ask(engine)
    other_seed = ask(engine, seed=12)
    assert first.text == again.text == after_others.text
    assert first.text != other_seed.text
    assert (first.finish_reason, first.output_tokens) == ("length", 24)
    assert first.prompt_tokens
    assert (again.load_s, again.generate_s is not None) == (0.0, True)


def test_the_same_text_after_the_model_was_away(engine: EmbeddedEngine) -> None:
    before = ask(engine)
    engine.unload(DEFAULT_MODEL)
    after = ask(engine)
    assert before.text == after.text
    assert after.load_s is not None
    assert after.load_s > 0


def test_an_answer_keeps_to_its_schema(engine: EmbeddedEngine) -> None:
    asked = a_request(DEFAULT_MODEL, "Tell me a story.", temperature=0, max_tokens=64, json_schema=SCORE_SCHEMA)
    made = engine.generate(asked)
    assert json.loads(made.text)["score"] in (1, 2, 3)
    assert engine.generate(asked).text == made.text


def test_a_schema_that_makes_no_grammar(engine: EmbeddedEngine) -> None:
    with pytest.raises(GenerationFailed, match="unrecognized type nonsense"):
        engine.generate(a_request(DEFAULT_MODEL, json_schema={"type": "nonsense"}))


def test_a_prompt_that_does_not_fit(engine: EmbeddedEngine) -> None:
    with pytest.raises(GenerationFailed, match="exceeds the available context size"):
        ask(engine, "word " * 5000)
    assert ask(engine).text


def test_a_prompt_that_llama_cpp_can_not_read(engine: EmbeddedEngine) -> None:
    with pytest.raises(GenerationFailed, match=r"llama\.cpp refused the request"):
        ask(engine, "half a pair: \ud800")


def test_one_model_at_a_time_and_its_memory_comes_back(weights_folder: Path, weights_file: Path) -> None:
    engine = EmbeddedEngine(weights_folder)
    other = f"embedded/{weights_file}"
    assert engine.resident() == []
    engine.generate(a_request(other, max_tokens=2))
    assert [transaction.name for transaction in engine.resident()] == [other]
    engine.generate(a_request(DEFAULT_MODEL, max_tokens=2))
    assert [transaction.name for transaction in engine.resident()] == [DEFAULT_MODEL]
    engine.unload(other)  # not the one that is held
    assert [transaction.name for transaction in engine.resident()] == [DEFAULT_MODEL]
    transaction = _memory()
    engine.unload(DEFAULT_MODEL)
    assert engine.resident() == []
    assert transaction - _memory() > 50 * MEGABYTE
    engine.close()


def _memory() -> int:
    gc.collect()
    used: int = psutil.Process(os.getpid()).memory_info().rss
    return used


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"GGUF and no more",
        b"not at all",
        gguf(),
        gguf([entry("general.architecture", STRING, text("nonesuch"))]),
        gguf([entry("general.architecture", STRING, text("llama"))]),
    ],
)
def test_a_broken_file_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(content)
    engine = EmbeddedEngine(tmp_path)
    with pytest.raises(EngineError) as caught:
        engine.generate(a_request(f"embedded/{path}"))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert engine.resident() == []


def test_half_of_the_real_file_is_refused(tmp_path: Path, weights_file: Path) -> None:
    path = tmp_path / "half.gguf"
    with weights_file.open("rb") as whole:
        path.write_bytes(whole.read(40 * MEGABYTE))
    engine = EmbeddedEngine(tmp_path)
    assert engine.describe(f"embedded/{path}").parameters == 134_515_008
    with pytest.raises(EngineError, match=r"llama\.cpp can't load it"):
        engine.generate(a_request(f"embedded/{path}"))


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("embedded/smollm2:135m", "run 'tipbench pull smollm2:135m'"),
        ("embedded/llama", "unknown; use one of smollm2:135m"),
        ("embedded/none.gguf", "there is no file none.gguf"),
        ("embedded/~nobody-of-that-name/x.gguf", "there is no file ~nobody"),
    ],
)
def test_models_that_are_not_there(tmp_path: Path, model: str, says: str) -> None:
    engine = EmbeddedEngine(tmp_path)
    with pytest.raises(ModelMissing, match=says):
        engine.describe(model)
    assert engine.models() == []


def test_without_llama_cpp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(MissingExtra, match=r"pip install 'tipbench\[embedded\]'"):
        EmbeddedEngine(tmp_path).describe(DEFAULT_MODEL)
