"""Attaches texts of any length and content to an MLflow run, losslessly.

A text is a file of the run if its artifact store can be reached, else a series of tags `artifact:NAME`,
`artifact:NAME:2`, …, because MLflow silently truncates long tags. A tag `tipbench.text:NAME` describes the text; what
is read back is checked against the digest in it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from tipbench.core.errors import StoredDataDamaged
from tipbench.core.identity import text_digest
from tipbench.core.untrusted import Storable, json_data, restored, storable

PART = 5_000  # characters per tag; MLflow truncates at 8,000, old servers at 5,000
_MAX_PARTS = 1_000_000


@dataclass(frozen=True)
class TextNote:
    """The description of a stored text, needed to read it back."""

    sha256: str
    escaped: bool
    stored_in: Literal["file", "tags"]
    parts: int

    def as_tag(self) -> str:
        return json.dumps(
            {"sha256": self.sha256, "escaped": self.escaped, "kept_in": self.stored_in, "parts": self.parts}
        )


def note_key(name: str) -> str:
    return f"tipbench.text:{name}"


def as_file(name: str, text: str) -> tuple[bytes, dict[str, str]]:
    """Return the file's content and the tag that describes it."""
    content, tag = _file_and_tag(text)
    return content, {note_key(name): tag}


@lru_cache(maxsize=4)  # every run of a grid has the same rubric
def _file_and_tag(text: str) -> tuple[bytes, str]:
    stored = storable(text)
    return stored.text.encode("utf-8"), TextNote(text_digest(text), stored.escaped, "file", 1).as_tag()


def as_tags(name: str, text: str) -> dict[str, str]:
    """Return the text as tags, including the tag that describes it."""
    stored = storable(text)
    parts = [stored.text[start : start + PART] for start in range(0, len(stored.text), PART)] or [""]
    note = TextNote(text_digest(text), stored.escaped, "tags", len(parts))
    return {note_key(name): note.as_tag(), **{_part_key(name, n): part for n, part in enumerate(parts)}}


def read_note(name: str, tags: Mapping[str, str]) -> TextNote | None:
    """Return the description of a text; None if the run has no such text. Raise StoredDataDamaged if it is invalid."""
    raw = tags.get(note_key(name))
    if raw is None:
        return None
    try:
        data = json_data(raw)
        note = TextNote(data["sha256"], data["escaped"], data["kept_in"], data["parts"])
        if note.stored_in not in ("file", "tags") or not 1 <= note.parts <= _MAX_PARTS:
            raise ValueError("no such text")
        return note
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoredDataDamaged(f"the tag {note_key(name)} does not describe a text: {raw[:200]!r}") from error


def from_tags(name: str, note: TextNote, tags: Mapping[str, str]) -> str:
    keys = [_part_key(name, n) for n in range(note.parts)]
    missing = [key for key in keys if key not in tags]
    if missing:
        raise StoredDataDamaged(f"the tag {missing[0]}, a part of {name}, is gone")
    return restore_verified(name, note, "".join(tags[key] for key in keys))


def from_file(name: str, note: TextNote, content: bytes) -> str:
    try:
        return restore_verified(name, note, content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise StoredDataDamaged(f"{name} is not UTF-8 any more: {error}") from error


def restore_verified(name: str, note: TextNote, stored: str) -> str:
    text = restored(Storable(stored, note.escaped))
    if text_digest(text) != note.sha256:
        raise StoredDataDamaged(f"{name} as it was read back is not what was written (its digest differs)")
    return text


def _part_key(name: str, number: int) -> str:
    return f"artifact:{name}" if number == 0 else f"artifact:{name}:{number + 1}"
