"""Find a user: in the lines of logs, and in any file.

An id may be a part of another one (u1, u10), or a word of a text. So lines and documents are parsed, and count as the
user's only if they say that they are. Whatever else has the id as a word is told apart.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from tipbench.core.files import read_regular
from tipbench.recommender.store.journal import records_in

_LARGEST = 10_000_000_000


def lines_of(user_id: str, resets: bool = True) -> Callable[[bytes], bool]:
    """Return a test for the lines of a user in the decision log and among signals; a torn line counts by the word."""
    quoted, word = f'"{user_id}"'.encode(), _word(user_id)

    def matches(line: bytes) -> bool:
        if not line.endswith(b"\n"):
            return word.search(line) is not None
        if quoted not in line:
            return False
        with suppress(ValueError):  # damaged: reported by the search through all files
            entry = from_json(line)
            return _user_of(entry) == user_id and (resets or entry.get("kind") != "reset")
        return False

    return matches


@dataclass
class Search:
    """Where a search through files found a user's id."""

    theirs: list[Path] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)  # the id is a word in it, and nobody can tell whose it is
    mentions: list[Path] = field(default_factory=list)  # the id is a word in a text, or the id of something else


def search_files(folders: Iterable[Path], user_id: str) -> Search:
    """Search every file of these folders for a user's id, as bytes, and tell what it is there."""
    search, word = Search(), _word(user_id)
    for path in (path for folder in folders for path in _files(folder)):
        with suppress(FileNotFoundError):  # a service removed it meanwhile
            content = read_regular(path, _LARGEST, os.O_NOFOLLOW)
            if word.search(content) or path.name.lstrip(".").startswith(f"{user_id}_"):
                _look_into(path, content, user_id, search)
    return search


def _look_into(path: Path, content: bytes, user_id: str, search: Search) -> None:
    word, is_theirs, is_mention = _word(user_id), False, False
    for where, part in _parts(path, content, word):
        try:
            data = from_json(part)
        except ValueError:
            search.unreadable.append(where)
            continue
        is_theirs |= _user_of(data) == user_id
        is_mention |= _in_strings(data, word)
    if is_theirs:
        search.theirs.append(path)
    elif is_mention:
        search.mentions.append(path)


def _parts(path: Path, content: bytes, word: re.Pattern[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield the JSON texts that a file consists of, as far as they have the word, and where each of them is."""
    if path.suffix == ".wal":
        for record in records_in(content):
            yield str(path), record
    elif ".jsonl" in path.name:
        for number, line in enumerate(content.split(b"\n"), 1):
            if word.search(line):
                yield f"{path}, line {number}", line
    elif ".json" in path.name or path.suffix == ".new":
        yield str(path), content
    else:  # a text
        yield str(path), to_json(content.decode("utf-8", "replace"))


def _files(folder: Path) -> Iterator[Path]:
    for found, _, names in os.walk(folder):
        for name in names:
            path = Path(found, name)
            if path.is_file() and not path.is_symlink():
                yield path


def _word(user_id: str) -> re.Pattern[bytes]:
    """Return a pattern that finds an id, but not as a part of another id.

    It begins with the id itself, by which it searches ten times as fast as with an assertion in front.
    """
    return re.compile(rb"%b(?<![A-Za-z0-9_-]%b)(?![A-Za-z0-9_-])" % (user_id.encode(), user_id.encode()))


def _user_of(data: Any) -> Any:
    """Return the user of a line, a journal's record or a document; None if there is none."""
    if not isinstance(data, dict):
        return None
    request = data.get("request")
    return data.get("user_id") or (request.get("user_id") if isinstance(request, dict) else None)


def _in_strings(data: Any, word: re.Pattern[bytes]) -> bool:
    """Return whether the word is in a string of this JSON, and not just digits of a number."""
    if isinstance(data, str):
        return word.search(data.encode("utf-8", "replace")) is not None
    if isinstance(data, dict):
        return any(_in_strings(key, word) or _in_strings(value, word) for key, value in data.items())
    return isinstance(data, list) and any(_in_strings(value, word) for value in data)
