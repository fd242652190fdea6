"""Makes untrusted text, such as a model's output, safe for a store, a terminal and a JSON file.

Escaping for stores: most texts are stored as they are. A text that contains a NUL or a lone surrogate, which
databases and UTF-8 files can't hold, is stored with every backslash doubled and each such character written
as ``\\uXXXX``; the caller must also store whether it was escaped (`Storable.escaped`).
"""

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from pydantic_core import from_json

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_ESCAPED = re.compile(r"\\(\\|u[0-9a-f]{4})")
# Control characters except tab and newline, line separators, and characters that reorder text on screen.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)
_MARKUP = re.compile(r"[\\|\[\]*_`~]|\A(?:[#=]|--|[+-](?= |\Z)|\d+[.)](?= |\Z))")
_HTML_OR_LINK = re.compile(r"@|:(?=//)|(?<=www)\.", re.IGNORECASE)
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\r", "\n")


class Storable(NamedTuple):
    """A text in a form that a store can hold."""

    text: str
    escaped: bool


def storable(text: str) -> Storable:
    if "\x00" not in text and _is_utf8(text):
        return Storable(text, escaped=False)
    doubled = text.replace("\\", "\\\\")
    return Storable(_UNSTORABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", doubled), escaped=True)


def _is_utf8(text: str) -> bool:
    """Return whether a text has no lone surrogate. Encoding it is quicker than searching it."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def restored(stored: Storable) -> str:
    if not stored.escaped:
        return stored.text
    return _ESCAPED.sub(lambda m: "\\" if m[1] == "\\" else chr(int(m[1][1:], 16)), stored.text)


def without_credentials(url: str) -> str:
    """Return a URL that may be shown and stored: everything before an @ is removed, even if the URL is invalid."""
    return re.sub(r"\A([^:/?#]*://)?.*@", r"\1", url, flags=re.DOTALL).rstrip("/")


def printable(text: str, limit: int | None = None) -> str:
    """Escape text for a terminal or a log: no control sequence gets through. With a limit, shorten it to one line."""
    if limit is not None:
        text = " ".join(text.split())
        text = text if len(text) <= limit else text[: limit - 1] + "…"
    if text.isprintable():  # much quicker; false for a text with a newline, and for all that is unprintable here
        return text
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def shown(value: Any, limit: int = 60) -> str:
    """Format any untrusted value for an error message: on one line, shortened."""
    try:
        return printable(repr(value), limit)
    except (ValueError, RecursionError):  # an integer of thousands of digits; deeply nested lists
        return f"a {type(value).__name__} too long to show"


def inert_in_spreadsheets(value: Any) -> Any:
    """Make a value safe for CSV: an apostrophe keeps spreadsheets from evaluating text that starts like a formula."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return "'" + text if text.startswith(_FORMULA) else text


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV that is safe in spreadsheets, with the keys of all rows as columns; "" for no rows."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: inert_in_spreadsheets(value) for key, value in row.items()} for row in rows)
    return out.getvalue() if rows else ""


def xml_text(text: str) -> str:
    """Return text that XML 1.0 can hold: characters that are not allowed there are written as ``\\uXXXX``."""
    return re.sub("[\ufffe\uffff]", lambda match: f"\\u{ord(match[0]):04x}", printable(text))


def markdown_text(text: str) -> str:
    """Escape text for one line of Markdown, tables included: it can't form links, images, markup or cell borders.

    What begins HTML or a bare link becomes an entity: some renderers, such as that of MLflow's pages, know no backslash
    there.
    """
    line = _MARKUP.sub(lambda m: f"{m[0][:-1]}\\{m[0][-1]}", printable(" ".join(text.split())).replace("&", "&amp;"))
    return _HTML_OR_LINK.sub(lambda match: f"&#{ord(match[0])};", line.replace("<", "&lt;").replace(">", "&gt;"))


def json_text(data: Any, indent: int | None = 2) -> str:
    """Return readable JSON that every tool can load: unprintable characters are written as ``\\uXXXX``."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False) if indent is None else _indented(data, "\n", indent)
    if (text.isascii() and "\x7f" not in text) or text.replace("\n", "").isprintable():  # much quicker
        return text
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def json_data(text: str | bytes) -> Any:
    """Return JSON as plain data; raise ValueError or RecursionError if it is none. In half of the usual time."""
    try:
        return from_json(text)
    except (ValueError, TypeError):  # also for half of a surrogate pair, which is JSON, whether it is escaped or not
        return json.loads(text)


_CONSTANTS = {None: "null", True: "true", False: "false"}


def _indented(value: Any, newline: str, indent: int) -> str:
    """Return the same as `json.dumps` with an indent, which has no C code for that and takes 4 times as long."""
    if isinstance(value, str):
        return encode_basestring(value)
    if value is None or value is True or value is False:
        return _CONSTANTS[value]
    if value and isinstance(value, dict):
        inner = newline + " " * indent
        pairs = [f"{encode_basestring(_json_key(key))}: {_indented(one, inner, indent)}" for key, one in value.items()]
        return f"{{{inner}{f',{inner}'.join(pairs)}{newline}}}"
    if value and isinstance(value, list | tuple):
        inner = newline + " " * indent
        return f"[{inner}{f',{inner}'.join([_indented(one, inner, indent) for one in value])}{newline}]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _json_key(key: Any) -> str:
    """Return the key as JSON has it: numbers, true, false and null become strings."""
    return key if isinstance(key, str) else next(iter(json.loads(json.dumps({key: None}, allow_nan=False))))
