"""What is wrong with a request's fields, in our words. Values are shown in short, and not where they may be secrets."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tipbench.untrusted import printable, shown, without_credentials

_LONGEST_VALUE = 80
_SECRET = re.compile("token|secret|passw|key|auth|cookie|credential|signature|csrf", re.IGNORECASE)
_Words = str | Callable[[Mapping[str, Any]], str]

_WHOLE, _NUMBER, _SWITCH, _TEXT = "a whole number", "a number", "true or false", "a text"
_OBJECT = "should be an object"
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
    "too_long": lambda c: f"should have at most {c['max_length']} entries",
    "too_short": lambda c: f"should have at least {c['min_length']} entries",
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
    return [_problem(error) for error in errors]


def _problem(error: Mapping[str, Any]) -> str:
    kind, place = error["type"], error["loc"][:1] if error["type"] == "json_invalid" else error["loc"]
    where = ".".join(printable(str(part), 40) for part in place)
    words = _WORDS.get(kind)
    if words is None:
        message = printable(str(error["msg"]), 200)
        words = re.sub(r"^(Input|Value|String) ", "", message)
    what = words if isinstance(words, str) else words(error.get("ctx", {}))
    if words == _OBJECT and place == ("body",):
        what = f"{_OBJECT}, sent as application/json"
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
