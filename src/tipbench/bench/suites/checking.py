"""Checks that may take for ever, as patterns and schemas do: done in a child process with limits.

Python's `re` can't be interrupted, and a pattern that backtracks may need longer than the universe has; a schema may
hold such a pattern, or refer to itself. So the time limit is one that the operating system keeps.
"""

import json
import re
from typing import Any, NoReturn

from tipbench.core.limited_process import LimitedProcess, OverLimit, serve

SECONDS = 1.0  # of processor time, for one check of one text
_process = LimitedProcess("tipbench.bench.suites.checking", SECONDS)
_OVER_LIMIT = f"it takes more than {SECONDS:g} s; make it simpler"
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def problem_of_pattern(pattern: str) -> str | None:
    """Return what is wrong with a regular expression, None if nothing is."""
    return _ask_for_problem("pattern", pattern)


def problem_of_schema(schema: Any) -> str | None:
    """Return what is wrong with a JSON Schema, None if nothing is."""
    return _ask_for_problem("schema", schema)


def matches_pattern(pattern: str, text: str) -> bool | None:
    """Return whether the pattern is found in the text; None if that can't be determined within the limits."""
    return _ask_for_match("pattern", pattern, text)


def matches_schema(schema: Any, text: str) -> bool | None:
    """Return whether the text is JSON that the schema allows; None if that can't be determined within the limits."""
    return _ask_for_match("schema", schema, text)


def _ask_for_problem(kind: str, rule: Any) -> str | None:
    try:
        found = _process.ask((kind, rule, None))
    except OverLimit:
        return _OVER_LIMIT
    return None if found is None else str(found)


def _ask_for_match(kind: str, rule: Any, text: str) -> bool | None:
    try:
        found = _process.ask((kind, rule, text))
    except OverLimit:
        return None
    return None if found is None else bool(found)


# In the child process


def _work(request: tuple[str, Any, str | None]) -> bool | str | None:
    """Answer a request: with a text, whether it matches (None: can't be determined); without, what the problem is."""
    kind, rule, text = request
    try:
        if kind == "pattern":
            return _pattern(rule, text)
        return _schema(rule, text)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a hostile rule can make a parser raise anything
        return " ".join(str(error).split())[:300] or type(error).__name__ if text is None else None


def _pattern(pattern: str, text: str | None) -> bool | None:
    compiled = re.compile(pattern)
    return None if text is None else compiled.search(text) is not None


def _schema(schema: Any, text: str | None) -> bool | None:
    # Imported here: only suites with a schema need it. The registry retrieves nothing from elsewhere.
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry

    kind = validator_for(schema, default=Draft202012Validator)
    if text is None:
        kind.check_schema(schema)
        _check_references(schema)
        return None
    try:
        data = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return kind(schema, registry=Registry()).is_valid(data)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _check_references(schema: Any) -> None:
    """Raise ValueError for a reference to another document, which is never fetched."""
    left = [schema]
    while left:
        one = left.pop()
        if isinstance(one, list):
            left += one
        elif isinstance(one, dict):
            for key, value in one.items():
                if key in _REFERENCES and isinstance(value, str) and not value.startswith("#"):
                    raise ValueError(f"'{key}: {value}' refers to another document; write it out here")
            left += one.values()


if __name__ == "__main__":
    serve(_work)
