"""What a collection that was cut short left loaded is unloaded, once, and by nobody who would be in the way."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench.engines.stand_in import Reply, StandIn
from tests.core.test_locks import held_elsewhere
from tipbench.bench.engines.embedded import EmbeddedEngine
from tipbench.bench.engines.ollama import OllamaEngine
from tipbench.bench.engines.residency import exclusive_use, unload_leftover_models
from tipbench.bench.engines.scripted import ScriptedEngine
from tipbench.core.errors import EngineError, LockTaken
from tipbench.core.paths import lock_path


@pytest.fixture
def engine(stand_in: StandIn) -> Iterator[OllamaEngine]:
    stand_in.on("/api/generate", Reply({"done_reason": "unload"}))
    made = OllamaEngine(stand_in.url, timeout_s=5, sleep=lambda _seconds: None)
    yield made
    made.close()


def cut_short(engine: OllamaEngine, home: Path) -> Path:
    with pytest.raises(KeyboardInterrupt), exclusive_use(engine, ["tiny:1b"], home, True, print):
        raise KeyboardInterrupt
    return lock_path(home, "engine", engine.address)


def loaded(*names: str) -> Reply:
    return Reply({"models": [{"name": name, "size": 800} for name in names]})


def test_it_is_unloaded_and_then_forgotten(stand_in: StandIn, engine: OllamaEngine, home: Path) -> None:
    lock = cut_short(engine, home)
    stand_in.on("/api/ps", loaded("tiny:1b"), loaded("tiny:1b"), loaded())
    said: list[str] = []
    unload_leftover_models(engine, home, said.append)
    assert stand_in.bodies("/api/generate") == [{"model": "tiny:1b", "keep_alive": 0}]
    assert len(said) == 1
    assert lock.read_text() == ""
    asked = len(stand_in.asked)
    unload_leftover_models(engine, home, said.append)
    assert len(stand_in.asked) == asked, "nothing is left to ask for"


def test_what_a_request_of_the_killed_one_loads_again_is_unloaded_too(
    stand_in: StandIn, engine: OllamaEngine, home: Path
) -> None:
    cut_short(engine, home)
    stand_in.on("/api/ps", loaded("tiny:1b"), loaded(), loaded("tiny:1b"), loaded())
    said: list[str] = []
    unload_leftover_models(engine, home, said.append)
    assert stand_in.bodies("/api/generate") == [{"model": "tiny:1b", "keep_alive": 0}] * 2
    assert len(said) == 1


def test_what_does_not_leave_is_told_and_not_forgotten(stand_in: StandIn, engine: OllamaEngine, home: Path) -> None:
    lock = cut_short(engine, home)
    stand_in.on("/api/ps", Reply({"error": "denied"}, 403))
    with pytest.raises(EngineError, match="answered 403"):
        unload_leftover_models(engine, home, print)
    assert json.loads(lock.read_text()) == ["tiny:1b"]


def test_another_collection_there_sees_to_it_itself(stand_in: StandIn, engine: OllamaEngine, home: Path) -> None:
    lock = cut_short(engine, home)
    with held_elsewhere(lock):
        unload_leftover_models(engine, home, print)
    assert stand_in.asked == []
    assert json.loads(lock.read_text()) == ["tiny:1b"]


def test_an_engine_that_loads_nothing_at_our_word_is_left_alone(home: Path) -> None:
    unload_leftover_models(ScriptedEngine(), home, print)
    assert not (home / "locks").exists()


def test_the_embedded_engine_is_for_one_collection_at_a_time(home: Path, tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path)
    model = ["embedded/smollm2:135m"]
    said: list[str] = []
    with (
        exclusive_use(engine, model, home, False, said.append),
        pytest.raises(LockTaken, match="another collection is using the embedded engine"),
        exclusive_use(EmbeddedEngine(tmp_path), model, home, False, said.append),
    ):
        pass
    with pytest.raises(ZeroDivisionError), exclusive_use(engine, model, home, False, said.append):
        raise ZeroDivisionError
    started = time.monotonic()
    with exclusive_use(EmbeddedEngine(tmp_path), model, home, False, said.append):
        assert time.monotonic() - started < 1, "what was loaded has gone with its process"
    assert said == []
