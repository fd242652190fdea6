"""Messages for validation errors of requests. Values are shown in short form, and never where they may be secrets."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tipbench.core.untrusted import printable, shown, without_credentials

_MAX_VALUE_CHARS = 80
_SECRET = re.compile("token|secret|passw|key|auth|cookie|credential|signature|csrf", re.IGNORECASE)
_Message = str | Callable[[Mapping[str, Any]], str]


def _entries(number: int) -> str:
    return f"{number} {'entry' if number == 1 else 'entries'}"


def _actual_length(context: Mapping[str, Any]) -> str:
    """Return how many entries were given, if pydantic has counted them."""
    number = context.get("actual_length")
    return "" if number is None else f" (given: {number})"


_WHOLE, _NUMBER, _SWITCH, _TEXT = "a whole number", "a number", "true or false", "a text"
_OBJECT = "should be an object"
_AS_JSON = "should be sent with the header 'Content-Type: application/json'"
_MESSAGES: Mapping[str, _Message] = {
    "missing": "is missing",
    "extra_forbidden": "is not a known field",
    "json_invalid": "is not JSON",
    "less_than_equal": lambda c: f"should be at most {c['le']}",
    "less_than": lambda c: f"should be below {c['lt']}",
    "greater_than_equal": lambda c: f"should be at least {c['ge']}",
    "greater_than": lambda c: f"should be above {c['gt']}",
    "finite_number": "should be a finite number",
    "string_too_long": lambda c: f"should have at most {c['max_length']} characters",
    "string_too_short": lambda c: f"should have at least {c['min_length']} characters",
    "string_pattern_mismatch": lambda c: f"should be of the form {c['pattern']}",
    "too_long": lambda c: f"should have at most {_entries(c['max_length'])}{_actual_length(c)}",
    "too_short": lambda c: f"should have at least {_entries(c['min_length'])}{_actual_length(c)}",
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
_JSON_LITERALS = {"None": "null", "True": "true", "False": "false"}
_WITHOUT_VALUE = ("missing", "json_invalid")


def problems_in(errors: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return one line per problem: the location, what is wrong and the given value."""
    return [_problem(error) for error in errors if not _is_consequence(error, errors)]


def _is_consequence(error: Mapping[str, Any], errors: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether an error follows from others: pydantic calls a list too short if its entries are invalid."""
    location = error["loc"]
    return error["type"] == "too_short" and any(
        len(other["loc"]) > len(location) and other["loc"][: len(location)] == location for other in errors
    )


def _problem(error: Mapping[str, Any]) -> str:
    kind, location = error["type"], error["loc"][:1] if error["type"] == "json_invalid" else error["loc"]
    where = ".".join(printable(str(part), 40) for part in location)
    message = _MESSAGES.get(kind)
    if message is None:
        original = printable(str(error["msg"]), 200)
        message = re.sub(r"^(Input|Value|String) ", "", original)
    what = message if isinstance(message, str) else message(error.get("ctx", {}))
    if message == _OBJECT and location == ("body",):
        what = _AS_JSON if isinstance(error.get("input"), bytes) else _OBJECT
    given = "" if kind in _WITHOUT_VALUE else _given_value(location, error.get("input"))
    return f"{where}: {what}{given}"


def _given_value(location: Sequence[Any], value: Any) -> str:
    """Return the value as part of a message; empty for secrets and for anything that may contain some."""
    if location[:1] in (("header",), ("cookie",)) or any(_SECRET.search(str(part)) for part in location):
        return ""
    if isinstance(value, Mapping | list | tuple | bytes):  # it may contain anything
        return ""
    if not isinstance(value, str):
        text = shown(value, _MAX_VALUE_CHARS)
        return f" (given: {_JSON_LITERALS.get(text, text)})"
    if "://" in value and "@" in value:
        value = without_credentials(value)
    bare = location[:1] in (("query",), ("path",)) and value.strip()  # where everything is text, so quotes add nothing
    return f" (given: {printable(value, _MAX_VALUE_CHARS) if bare else shown(value, _MAX_VALUE_CHARS)})"
