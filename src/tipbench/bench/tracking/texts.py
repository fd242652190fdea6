"""Texts of any length and content on an MLflow run, without losing a character.

A text is a file of the run where its artifact store can be reached, else tags `artifact:NAME`, `artifact:NAME:2`,
… because MLflow cuts long tags without a word. A tag `tipbench.text:NAME` describes it; what is read back is
held against its digest.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from tipbench.core.errors import StoredDataDamaged
from tipbench.core.identity import text_digest
from tipbench.core.untrusted import Storable, restored, storable

PART = 5_000  # characters of a tag; MLflow cuts at 8,000, old servers at 5,000
_MOST_PARTS = 1_000_000


@dataclass(frozen=True)
class TextNote:
    """What must be known to read a text back."""

    sha256: str
    escaped: bool
    kept_in: Literal["file", "tags"]
    parts: int

    def as_tag(self) -> str:
        return json.dumps(
            {"sha256": self.sha256, "escaped": self.escaped, "kept_in": self.kept_in, "parts": self.parts}
        )


def note_key(name: str) -> str:
    return f"tipbench.text:{name}"


def as_file(name: str, text: str) -> tuple[bytes, dict[str, str]]:
    """The file's content, and the tag that describes it."""
    content, tag = _file_and_tag(text)
    return content, {note_key(name): tag}


@lru_cache(maxsize=4)  # the rubric comes with every run of a grid
def _file_and_tag(text: str) -> tuple[bytes, str]:
    stored = storable(text)
    return stored.text.encode("utf-8"), TextNote(text_digest(text), stored.escaped, "file", 1).as_tag()


def as_tags(name: str, text: str) -> dict[str, str]:
    """The text in tags, with the one that describes it."""
    stored = storable(text)
    parts = [stored.text[start : start + PART] for start in range(0, len(stored.text), PART)] or [""]
    note = TextNote(text_digest(text), stored.escaped, "tags", len(parts))
    return {note_key(name): note.as_tag(), **{_part_key(name, n): part for n, part in enumerate(parts)}}


def read_note(name: str, tags: Mapping[str, str]) -> TextNote | None:
    """The description of a text; None when the run has no such text."""
    raw = tags.get(note_key(name))
    if raw is None:
        return None
    try:
        data = json.loads(raw)
        note = TextNote(data["sha256"], data["escaped"], data["kept_in"], data["parts"])
        if note.kept_in not in ("file", "tags") or not 1 <= note.parts <= _MOST_PARTS:
            raise ValueError("no such text")
        return note
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoredDataDamaged(f"the tag {note_key(name)} does not describe a text: {raw[:200]!r}") from error


def from_tags(name: str, note: TextNote, tags: Mapping[str, str]) -> str:
    keys = [_part_key(name, n) for n in range(note.parts)]
    missing = [key for key in keys if key not in tags]
    if missing:
        raise StoredDataDamaged(f"the tag {missing[0]}, a part of {name}, is gone")
    return checked(name, note, "".join(tags[key] for key in keys))


def from_file(name: str, note: TextNote, content: bytes) -> str:
    try:
        return checked(name, note, content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise StoredDataDamaged(f"{name} is not UTF-8 any more: {error}") from error


def checked(name: str, note: TextNote, stored: str) -> str:
    text = restored(Storable(stored, note.escaped))
    if text_digest(text) != note.sha256:
        raise StoredDataDamaged(f"{name} as it was read back is not what was written (its digest differs)")
    return text


def _part_key(name: str, number: int) -> str:
    return f"artifact:{name}" if number == 0 else f"artifact:{name}:{number + 1}"
