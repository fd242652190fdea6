"""What is wrong with a request's fields, in our words. Values are shown in short, and not where they may be secrets."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tipbench.core.untrusted import printable, shown, without_credentials

_LONGEST_VALUE = 80
_SECRET = re.compile("token|secret|passw|key|auth|cookie|credential|signature|csrf", re.IGNORECASE)
_Words = str | Callable[[Mapping[str, Any]], str]


def _entries(number: int) -> str:
    return f"{number} {'entry' if number == 1 else 'entries'}"


def _there_are(context: Mapping[str, Any]) -> str:
    """How many were given, where somebody has counted them."""
    number = context.get("actual_length")
    return "" if number is None else f" (given: {number})"


_WHOLE, _NUMBER, _SWITCH, _TEXT = "a whole number", "a number", "true or false", "a text"
_OBJECT = "should be an object"
_AS_JSON = "should be sent with the header 'Content-Type: application/json'"
_WORDS: Mapping[str, _Words] = {
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "json_invalid": "is not JSON",
    "less_than_equal": lambda c: f"should be at most {c['le']}",
    "less_than": lambda c: f"should be below {c['lt']}",
    "greater_than_equal": lambda c: f"should be at least {c['ge']}",
    "greater_than": lambda c: f"should be above {c['gt']}",
    "finite_number": "should be a finite number",
    "string_too_long": lambda c: f"should have at most {c['max_length']} characters",
    "string_too_short": lambda c: f"should have at least {c['min_length']} characters",
    "string_pattern_mismatch": lambda c: f"should be of the form {c['pattern']}",
    "too_long": lambda c: f"should have at most {_entries(c['max_length'])}{_there_are(c)}",
    "too_short": lambda c: f"should have at least {_entries(c['min_length'])}{_there_are(c)}",
    "literal_error": lambda c: f"should be {c['expected']}",
    "enum": lambda c: f"should be {c['expected']}",
    "value_error": lambda c: str(c["error"]),
    "assertion_error": lambda c: str(c["error"]),
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float", "int_parsing_size"), f"should be {_WHOLE}"),
    **dict.fromkeys(("float_parsing", "float_type"), f"should be {_NUMBER}"),
    **dict.fromkeys(("bool_parsing", "bool_type"), f"should be {_SWITCH}"),
    **dict.fromkeys(("string_type", "string_unicode"), f"should be {_TEXT}"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type", "mapping_type"), _OBJECT),
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "iterable_type"), "should be a list"),
    "none_required": "should be null",
}
_JSON_WORDS = {"None": "null", "True": "true", "False": "false"}
_NOTHING_GIVEN = ("missing", "json_invalid")


def problems_in(errors: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line a problem: where, what is wrong, and what was given."""
    return [_problem(error) for error in errors if not _follows(error, errors)]


def _follows(error: Mapping[str, Any], errors: Sequence[Mapping[str, Any]]) -> bool:
    """A list whose entries are wrong is not too short because of that."""
    place = error["loc"]
    return error["type"] == "too_short" and any(
        len(other["loc"]) > len(place) and other["loc"][: len(place)] == place for other in errors
    )


def _problem(error: Mapping[str, Any]) -> str:
    kind, place = error["type"], error["loc"][:1] if error["type"] == "json_invalid" else error["loc"]
    where = ".".join(printable(str(part), 40) for part in place)
    words = _WORDS.get(kind)
    if words is None:
        message = printable(str(error["msg"]), 200)
        words = re.sub(r"^(Input|Value|String) ", "", message)
    what = words if isinstance(words, str) else words(error.get("ctx", {}))
    if words == _OBJECT and place == ("body",):
        what = _AS_JSON if isinstance(error.get("input"), bytes) else _OBJECT
    given = "" if kind in _NOTHING_GIVEN else _given(place, error.get("input"))
    return f"{where}: {what}{given}"


def _given(place: Sequence[Any], value: Any) -> str:
    if place[:1] in (("header",), ("cookie",)) or any(_SECRET.search(str(part)) for part in place):
        return ""
    if isinstance(value, Mapping | list | tuple | bytes):  # there may be anything in it
        return ""
    if not isinstance(value, str):
        text = shown(value, _LONGEST_VALUE)
        return f" (given: {_JSON_WORDS.get(text, text)})"
    if "://" in value and "@" in value:
        value = without_credentials(value)
    bare = place[:1] in (("query",), ("path",)) and value.strip()  # there, everything is text
    return f" (given: {printable(value, _LONGEST_VALUE) if bare else shown(value, _LONGEST_VALUE)})"
