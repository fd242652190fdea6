"""Texts in tags and files: nothing is lost, and what was lost or altered is never passed off as the text."""

import json
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tipbench.bench.tracking.texts import PART, as_file, as_tags, from_file, from_tags, note_key, read_note
from tipbench.core.errors import StoredDataDamaged

# Everything that a str can hold, lone surrogates and NUL included, with a liking for what escapes are made of.
ANY_CHARACTER = st.one_of(
    st.characters(), st.characters(categories=["Cs"]), st.sampled_from("\x00\\u0d8f\ud800\udfff😀\r\n\"'")
)
ANY_TEXT = st.text(ANY_CHARACTER)
LONG_TEXT = st.builds(lambda piece, times: (piece * times)[:20_000], ANY_TEXT, st.integers(1, 20_000))


def read(name: str, tags: dict[str, str]) -> str:
    note = read_note(name, tags)
    assert note is not None
    return from_tags(name, note, tags)


@given(st.one_of(ANY_TEXT, LONG_TEXT))
@example("")
@example("\\u0000\x00\\\\u0000")
@example("\ud83d\ude00")  # two halves that are no pair in a str
@example(("\x00\\" * 10_000)[:20_000])
@example("x" * PART)
@example("x" * (PART + 1))
def test_every_text_survives_tags(text: str) -> None:
    tags = as_tags("raw.txt", text)
    assert all(len(value) <= PART for value in tags.values())
    for value in tags.values():
        assert "\x00" not in value
        value.encode()
    assert read("raw.txt", json.loads(json.dumps(tags))) == text


@given(st.one_of(ANY_TEXT, LONG_TEXT))
@example("\r\n\r\ufeff")
def test_every_text_survives_a_file(text: str) -> None:
    content, tags = as_file("raw.txt", text)
    note = read_note("raw.txt", tags)
    assert note is not None
    assert note.stored_in == "file"
    assert b"\x00" not in content
    assert from_file("raw.txt", note, content) == text


@given(st.text(ANY_CHARACTER, min_size=1), st.text(ANY_CHARACTER))
def test_an_altered_part_never_makes_another_text(text: str, altered: str) -> None:
    with suppress(StoredDataDamaged):
        assert read("raw.txt", {**as_tags("raw.txt", text), "artifact:raw.txt": altered}) == text


@given(st.text(ANY_CHARACTER, min_size=1), st.binary())
def test_an_altered_file_never_makes_another_text(text: str, content: bytes) -> None:
    note = read_note("raw.txt", as_file("raw.txt", text)[1])
    assert note is not None
    with suppress(StoredDataDamaged):
        assert from_file("raw.txt", note, content) == text


@pytest.mark.parametrize("altered", ["", "Text", "text ", "text\\u0000", "\xfftext"])
def test_an_altered_text_is_found_out(altered: str) -> None:
    note = read_note("raw.txt", as_file("raw.txt", "text")[1])
    assert note is not None
    with pytest.raises(StoredDataDamaged, match=r"raw\.txt"):
        read("raw.txt", {**as_tags("raw.txt", "text"), "artifact:raw.txt": altered})
    with pytest.raises(StoredDataDamaged, match=r"raw\.txt"):
        from_file("raw.txt", note, altered.encode("latin-1"))


@pytest.mark.parametrize("lost", ["artifact:raw.txt", "artifact:raw.txt:2", "artifact:raw.txt:4"])
def test_a_lost_part_is_named(lost: str) -> None:
    tags = as_tags("raw.txt", "ab\x00" * 5_000)
    assert [key for key in tags if key.startswith("artifact:")][1:] == [f"artifact:raw.txt:{n}" for n in range(2, 9)]
    del tags[lost]
    with pytest.raises(StoredDataDamaged, match=f"{lost}, a part of raw.txt, is gone"):
        read("raw.txt", tags)


def test_parts_in_another_order_are_found_out() -> None:
    tags = as_tags("raw.txt", "a" * PART + "b" * PART)
    tags["artifact:raw.txt"], tags["artifact:raw.txt:2"] = tags["artifact:raw.txt:2"], tags["artifact:raw.txt"]
    with pytest.raises(StoredDataDamaged):
        read("raw.txt", tags)


def test_a_text_that_mlflow_cut_is_found_out() -> None:
    tags = as_tags("raw.txt", "long " * 1_000)
    with pytest.raises(StoredDataDamaged):
        read("raw.txt", {key: value[:4_000] for key, value in tags.items()})


def test_no_text_of_that_name() -> None:
    assert read_note("raw.txt", as_tags("prompt.txt", "x")) is None


GOOD = {"sha256": "a", "escaped": False, "kept_in": "tags", "parts": 1}


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "[]",
        "null",
        "{}",
        '{"sha256": "a"',
        "[" * 100_000,
        *(json.dumps({**GOOD, **odd}) for odd in ({"parts": 0}, {"parts": "2"}, {"parts": 10**12}, {"kept_in": "s3"})),
    ],
)
def test_a_description_that_is_none(raw: str) -> None:
    with pytest.raises(StoredDataDamaged, match="does not describe a text"):
        read_note("raw.txt", {note_key("raw.txt"): raw})


@given(st.text())
def test_any_description_is_read_or_refused(raw: str) -> None:
    with pytest.raises(StoredDataDamaged):
        read("raw.txt", {note_key("raw.txt"): raw, "artifact:raw.txt": "x"})
