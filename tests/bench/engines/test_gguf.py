"""GGUF: exact counts from sound files, and one kind of error, quickly, from everything else."""

import struct
import time
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.bench.engines.gguf_files import ARRAY, F32, STRING, U8, entry, gguf, header, number, text
from tipbench.bench.engines.gguf import GgufFacts, read_gguf
from tipbench.core.errors import EngineError

MEGABYTE = 1_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.gguf"


def array(element: int, count: int, values: bytes = b"") -> bytes:
    return struct.pack("<IQ", element, count) + values


def read(path: Path, content: bytes) -> GgufFacts:
    path.write_bytes(content)
    return read_gguf(path)


def refused(path: Path, content: bytes) -> str:
    with pytest.raises(EngineError) as caught:
        read(path, content)
    return str(caught.value)


def test_a_sound_file(path: Path) -> None:
    entries = [
        entry("general.name", STRING, text("Tiny ü")),
        number("general.file_type", 15),
        entry("tokens", ARRAY, array(STRING, 2, text("a") + text("b"))),
        entry("scores", ARRAY, array(F32, 2, struct.pack("<2f", 0.5, 1.5))),
        entry("pairs", ARRAY, array(ARRAY, 1, array(U8, 3, b"abc"))),
        number("llama.context_length", 2048),
    ]
    assert read(path, gguf(entries, {"a": (64, 32), "b": (64,), "c": ()})) == GgufFacts(
        64 * 32 + 64 + 1, "Q4_K_M", 2048, None
    )


def test_what_it_does_not_say_is_unknown(path: Path) -> None:
    assert read(path, gguf()) == GgufFacts(256, None, None, None)


@pytest.mark.parametrize(
    "entries",
    [
        [entry("x.context_length", STRING, text("long")), entry("general.file_type", STRING, text("Q4"))],
        [number("x.context_length", 0), entry("general.file_type", ARRAY, array(U8, 1, b"a"))],
        [entry("x.context_length", F32, struct.pack("<f", float("nan"))), number("general.file_type", 99)],
    ],
)
def test_odd_values_are_unknown(path: Path, entries: list[bytes]) -> None:
    assert read(path, gguf(entries)) == GgufFacts(256, None, None, None)


def test_one_part_of_a_split_model_does_not_pass_for_a_small_model(path: Path) -> None:
    assert "one of 7 parts" in refused(path, gguf([number("split.count", 7)], {}))
    assert read(path, gguf([number("split.count", 1)])).parameters == 256


def test_a_file_without_weights(path: Path) -> None:
    assert "holds no weights" in refused(path, gguf(tensors={}))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "does not start with 'GGUF'"),
        (b"GGUF", "not a usable GGUF file"),
        (header(1, 1, version=1), "version 1"),
        (header(2**60, 0), "tensors"),
        (header(0, 2**60), "entries"),
        (header(0, 1) + struct.pack("<Q", 2**60), "a text of 1152921504606846976 bytes"),
        (header(0, 1) + struct.pack("<Q", 9_999_999), "not a usable GGUF file"),
        (header(0, 1) + entry("k", ARRAY, array(STRING, 2**60)), "a list of 1152921504606846976 values"),
        (header(0, 1) + entry("k", ARRAY, array(STRING, 40_000_000)), "not a usable GGUF file"),
        (header(0, 1) + entry("k", ARRAY, array(U8, 40_000_000)), "no weights"),
        (header(0, 1) + entry("k", ARRAY, array(ARRAY, 1) * 50_000), "not a usable GGUF file"),
        (header(0, 1) + entry("k", 77, b""), "unknown kind 77"),
        (header(1, 0) + text("w") + struct.pack("<I", 4_000_000_000), "a tensor of 4000000000 dimensions"),
        (gguf()[:-20], "not a usable GGUF file"),
    ],
)
def test_broken_files_are_refused_at_once_and_in_little_memory(path: Path, content: bytes, says: str) -> None:
    tracemalloc.start()
    started = time.monotonic()
    message = refused(path, content)
    seconds = time.monotonic() - started
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert says in message
    assert "\n" not in message
    assert seconds < 2
    assert peak < 40 * MEGABYTE


SOUND = gguf([number("general.file_type", 3), entry("t", ARRAY, array(STRING, 1, text("a")))])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.binary(max_size=200), st.binary(max_size=200).map(lambda raw: header(1, 2) + raw)))
@example(b"GGUF" + b"\xff" * 100)
def test_any_bytes_are_a_model_or_an_engine_error(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with suppress(EngineError):
        assert read_gguf(path).parameters > 0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(SOUND) - 1), st.binary(min_size=1, max_size=9))
def test_any_damage_to_a_sound_file(path: Path, at: int, damage: bytes) -> None:
    path.write_bytes(SOUND[:at] + damage + SOUND[at + len(damage) :])
    with suppress(EngineError):
        assert read_gguf(path).parameters > 0


def test_a_file_that_is_not_there_or_is_a_folder(tmp_path: Path) -> None:
    for missing in (tmp_path / "none.gguf", tmp_path):
        with pytest.raises(EngineError, match="can't be read"):
            read_gguf(missing)
