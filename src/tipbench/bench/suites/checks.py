"""Checks by code: what a suite can ask of a text without a judge."""

import json
import logging
import re
import unicodedata
from collections.abc import Callable, Mapping
from math import inf, isfinite, nan
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tipbench.bench.suites.checking import (
    SECONDS,
    matches_pattern,
    matches_schema,
    problem_of_pattern,
    problem_of_schema,
)

CheckName = Literal[
    "contract", "max_chars", "max_words", "contains", "excludes", "equals", "words", "number", "regex", "json_schema",
    "scenario",
]  # fmt: skip
BY_SCENARIO = "scenario"  # the flag's check is declared with each scenario
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(
    r"(?<!\w)[-+−]?(?:(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
)
_LONGEST_NUMBER = 40  # characters; anything longer is no quantity that somebody meant
_MAX_NUMBERS = 1_000  # in a text that is meant to name one
_MAX_TEXTS = 1_000
_MAX_EQUAL = 10_000  # characters of texts that are compared: normalising takes time by the square of the length
_log = logging.getLogger(__name__)

_Text = Annotated[str, Field(min_length=1, max_length=100_000)]
_Texts = Annotated[list[_Text], Field(min_length=1, max_length=_MAX_TEXTS)]


class Check(BaseModel):
    """What a text is checked for. `check` says how; each kind has parameters of its own, listed in `_KINDS`."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    check: CheckName | None = None
    limit: int | None = Field(None, ge=1)
    texts: _Texts | None = None
    words: _Texts | None = None
    min: float | None = None
    max: float | None = None
    pattern: _Text | None = None
    json_schema: dict[str, Any] | bool | None = Field(None, alias="schema")

    @model_validator(mode="after")
    def _check_parameters(self) -> "Check":
        kind = _KINDS[self.check] if self.check else _Kind()
        given = set(self.parameters)
        wrong = sorted(given - kind.parameters)
        if wrong:
            takes = f"takes {', '.join(sorted(kind.parameters))}" if kind.parameters else "takes no parameter"
            raise ValueError(f"'{', '.join(wrong)}' does not belong here: check {self.check or '(none)'} {takes}")
        if kind.parameters and not (given & kind.parameters):
            raise ValueError(f"check {self.check} needs {' or '.join(sorted(kind.parameters))}")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"no number is from {self.min:g} to {self.max:g}; swap the two")
        try:
            json.dumps(self.json_schema, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"the schema holds something that JSON does not have: {error}") from None
        if self.check == "equals" and any(len(text) > _MAX_EQUAL for text in self.texts or ()):
            raise ValueError(f"check equals compares texts of at most {_MAX_EQUAL:,} characters")
        if self.words and any(not _WORD.search(word) for word in self.words):
            raise ValueError("an entry of 'words' holds no letter or digit")
        return self

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that were given, by the names they have in a file."""
        data = self.model_dump(by_alias=True, exclude_none=True)
        return {name: data[name] for name in _PARAMETERS if name in data}

    @property
    def problem(self) -> str | None:
        """What is wrong with its pattern or schema; None if nothing is. Compiles them, within the limits."""
        if self.pattern is not None:
            found = problem_of_pattern(self.pattern)
            return found and f"the pattern can't be used: {found}"
        if self.json_schema is not None:
            found = problem_of_schema(self.json_schema)
            return found and f"the schema can't be used: {found}"
        return None

    def holds(self, text: str, format_ok: bool) -> bool | None:
        """Return whether the check is true of a text; None if that can't be determined within the limits.

        `format_ok` is whether the answer that the text was read from keeps the output contract.
        """
        assert self.check
        return format_ok if self.check == "contract" else _KINDS[self.check].holds(self, text)


def checked(check: Check, text: str, format_ok: bool, name: str, worst: bool) -> bool:
    """Return whether the check is true of a text; where that can't be determined, the value that lowers the score."""
    found = check.holds(text, format_ok)
    if found is None:
        _log.warning(
            "The check of '%s' took more than %g s on a text of %d characters, or can't be used; it counts as failed.",
            name,
            SECONDS,
            len(text),
        )
        return worst
    return found


# The kinds of checks


class _Kind(NamedTuple):
    parameters: frozenset[str] = frozenset()
    holds: Callable[[Check, str], bool | None] = lambda *_: None


def _contains(check: Check, text: str) -> bool:
    folded = text.casefold()
    return all(part.casefold() in folded for part in check.texts or ())


def _excludes(check: Check, text: str) -> bool:
    folded = text.casefold()
    return not any(part.casefold() in folded for part in check.texts or ())


def _equals(check: Check, text: str) -> bool:
    return len(text) <= _MAX_EQUAL and normalised(text) in {normalised(one) for one in check.texts or ()}


def normalised(text: str) -> str:
    """Return a text without what people don't mean by different: case, width, spaces, marks at both ends."""
    folded = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    start, end = 0, len(folded)
    while start < end and _is_mark(folded[start]):
        start += 1
    while end > start and _is_mark(folded[end - 1]):
        end -= 1
    return folded[start:end] or folded


def _is_mark(character: str) -> bool:
    """Whether a character at the end of a text is quotation or punctuation; a sign of a number is neither."""
    return character not in "-+%" and (character == " " or unicodedata.category(character)[0] == "P")


def _words(check: Check, text: str) -> bool:
    spaced = _spaced(text)
    return any(_spaced(word) in spaced for word in check.words or ())


def _spaced(text: str) -> str:
    """Return the words of a text with one space around each, so that whole words can be found in it."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _number(check: Check, text: str) -> bool:
    """Return whether the text names one number, and that is within the range; two numbers are no answer."""
    numbers = set()
    for count, match in enumerate(_NUMBER.finditer(text)):
        numbers.add(_value(match[0]))
        if len(numbers) > 1 or count == _MAX_NUMBERS:
            return False
    low = -inf if check.min is None else check.min
    high = inf if check.max is None else check.max
    return any(low <= number <= high for number in numbers)


def _value(number: str) -> float:
    value = float(number.replace(",", "").replace("−", "-")) if len(number) <= _LONGEST_NUMBER else inf
    return value if isfinite(value) else nan  # which is in no range


def _kind(parameters: str, holds: Callable[[Check, str], bool | None] = lambda *_: None) -> _Kind:
    return _Kind(frozenset(parameters.split()), holds)


_KINDS: Mapping[str, _Kind] = {
    "contract": _kind(""),
    BY_SCENARIO: _kind(""),
    "max_chars": _kind("limit", lambda check, text: len(text) > (check.limit or 0)),
    "max_words": _kind("limit", lambda check, text: len(text.split()) > (check.limit or 0)),
    "contains": _kind("texts", _contains),
    "excludes": _kind("texts", _excludes),
    "equals": _kind("texts", _equals),
    "words": _kind("words", _words),
    "number": _kind("min max", _number),
    "regex": _kind("pattern", lambda check, text: matches_pattern(check.pattern or "", text)),
    "json_schema": _kind("schema", lambda check, text: matches_schema(check.json_schema, text)),
}
_PARAMETERS = tuple(sorted({name for kind in _KINDS.values() for name in kind.parameters}))
