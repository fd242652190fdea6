"""What a model wrote is untrusted input: here it is made safe for a store, a terminal and a JSON file.

The escape for stores. Most texts are stored as they are. A text that holds a NUL or a lone surrogate, which
databases and UTF-8 files can't hold, is stored with every backslash doubled and each such character written
as ``\\uXXXX``; whoever stores it must keep the fact that it was escaped (`Storable.escaped`).
"""

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ESCAPED = re.compile(r"\\(\\|u[0-9a-f]{4})")
# Controls but tab and newline, line separators, and the marks that reorder text on screen.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r", "\n")


class Storable(NamedTuple):
    """A text in the form in which a store can hold it."""

    text: str
    escaped: bool


def storable(text: str) -> Storable:
    if not _UNSTORABLE.search(text):
        return Storable(text, escaped=False)
    doubled = text.replace("\\", "\\\\")
    return Storable(_UNSTORABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", doubled), escaped=True)


def restored(stored: Storable) -> str:
    if not stored.escaped:
        return stored.text
    return _ESCAPED.sub(lambda m: "\\" if m[1] == "\\" else chr(int(m[1][1:], 16)), stored.text)


def without_credentials(url: str) -> str:
    """A URL as it may be shown and stored: nothing before an @, even where that makes no address."""
    return re.sub(r"\A([^:/?#]*://)?.*@", r"\1", url, flags=re.DOTALL).rstrip("/")


def printable(text: str, limit: int | None = None) -> str:
    """For a terminal or a log: no escape sequence gets through, and on one line where a limit is given."""
    if limit is not None:
        text = " ".join(text.split())
        text = text if len(text) <= limit else text[: limit - 1] + "…"
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def shown(value: Any, limit: int = 60) -> str:
    """A value from outside as an error message shows it: on one line, cut short, whatever it is."""
    try:
        return printable(repr(value), limit)
    except (ValueError, RecursionError):  # an integer of thousands of digits; lists in lists in lists
        return f"a {type(value).__name__} too long to show"


def inert_in_spreadsheets(value: Any) -> Any:
    """For CSV: a spreadsheet would run what a model wrote behind an equals sign; an apostrophe makes it text."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return "'" + text if text.startswith(_FORMULA) else text


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table whose columns are all keys of its rows, safe to open in a spreadsheet; nothing for no rows."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: inert_in_spreadsheets(value) for key, value in row.items()} for row in rows)
    return out.getvalue() if rows else ""


def markdown_text(text: str) -> str:
    """On one line of Markdown, in a table too: nothing in it is taken for a link, an image, markup or the next cell."""
    return re.sub(r"([\\|<>\[\]*_`])", r"\\\1", printable(" ".join(text.split())))


def json_text(data: Any, indent: int | None = 2) -> str:
    """JSON that people can read and every tool can load: what can't be printed is written as ``\\uXXXX``."""
    text = json.dumps(data, indent=indent, ensure_ascii=False, allow_nan=False)
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
