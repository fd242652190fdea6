"""The output contract: the required format of an answer, and tolerant readers for answers that break it."""

import json
import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT_END = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"```[^\n`]*\n(.*?)(?:```|\Z)", re.DOTALL)
# An unterminated string is matched as such (third group), so that it is not retried from each quote inside it.
_JSON_STRING = re.compile(r'"((?:[^"\\]|\\.)*)(?:"(\s*:)?|(\\?\Z))', re.DOTALL)
_ARRAY_OPENED = re.compile(r"\[\s*[\"{]")
_LIST_ITEM = re.compile(r"^\s{0,8}(?:\(?\d{1,3}[.):]|[-*•–—+])\s+(\S.*)$")
_BETWEEN = re.compile(r"[\s,]*")
_MAX_BRACKETS = 20
_MAX_READ = 200_000  # characters; no list of short texts is longer


class ReadAnswer(NamedTuple):
    """The candidates read from a raw answer, and how they were found."""

    candidates: tuple[str, ...]
    found: int
    format_ok: bool
    read_as: str


class Contract(BaseModel):
    """`output` of suite.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["json_array", "lines", "text"]
    max_tokens: int = Field(512, ge=1, le=32_768)

    def read(self, raw: str, n: int) -> ReadAnswer:
        """Read the first `n` candidates of an answer: strictly if it keeps the contract, else with tolerant readers."""
        text = raw.strip()
        if self.format != "json_array" or _strict_json(text) is None:  # a candidate may itself mention <think>
            text = without_thoughts(text).strip()
        if self.format == "text":
            return ReadAnswer((text,) if text else (), int(bool(text)), bool(text), "contract" if text else "nothing")
        strict = _strict_json(text) if self.format == "json_array" else _strict_lines(text)
        if strict is not None and len(strict) == n:
            return ReadAnswer(tuple(strict), n, True, "contract")
        for name, reader in _TOLERANT:
            found = [item for item in (_clean(item) for item in reader(text[:_MAX_READ])) if item]
            if found:
                return ReadAnswer(tuple(found[:n]), len(found), False, name)
        if self.format == "lines" and text:
            found = [line.strip() for line in text.splitlines() if line.strip()]
            return ReadAnswer(tuple(found[:n]), len(found), False, "lines")
        return ReadAnswer((), 0, False, "nothing")


def without_thoughts(raw: str) -> str:
    """Remove a reasoning model's thinking from the answer; some chat templates omit the opening tag."""
    return _THOUGHT_END.sub("", _THOUGHT.sub("", raw))


def _strict_json(text: str) -> list[str] | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(data, list) and all(isinstance(item, str) and item.strip() for item in data):
        return [item.strip() for item in data]
    return None


def _strict_lines(text: str) -> list[str] | None:
    lines = text.splitlines()
    if any(not line.strip() or _LIST_ITEM.match(line) for line in lines):
        return None
    return [line.strip() for line in lines]


def _json_anywhere(text: str) -> list[str]:
    """Find a JSON array or object anywhere in the answer: in a code fence, or after other text."""
    decoder = json.JSONDecoder()
    for part in [*_FENCE.findall(text), text]:
        starts = [match.start() for match in re.finditer(r"[\[{]", part)][:_MAX_BRACKETS]
        for start in starts:
            data = _consecutive_values(decoder, part, start)
            if found := _strings(data[0] if len(data) == 1 else data):
                return found
    return []


def _consecutive_values(decoder: json.JSONDecoder, text: str, start: int) -> list[Any]:
    """Decode the value at `start`; if it is a plain object, also those after it: JSON lines, or a cut-off array."""
    values: list[Any] = []
    while text.startswith(("{", "["), start):
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            break
        values.append(value)
        if not isinstance(value, dict) or any(isinstance(inner, list) for inner in value.values()):
            break
        between = _BETWEEN.match(text, end)
        start = between.end() if between else end
    return values


def _strings(data: Any) -> list[str]:
    """Return the candidates in decoded JSON: strings, the longest string of each object, or a list inside an object."""
    if isinstance(data, dict):
        lists = [value for value in data.values() if isinstance(value, list)]
        if lists:
            return _strings(lists[0])
        return [value for value in data.values() if isinstance(value, str)]
    if not isinstance(data, list):
        return []
    found = []
    for item in data:
        if isinstance(item, str):
            found.append(item)
        elif isinstance(item, dict):
            found.extend(sorted((v for v in item.values() if isinstance(v, str)), key=len, reverse=True)[:1])
    return found


def _json_cut_off(text: str) -> list[str]:
    """Return the complete strings of an array that is cut off or malformed; keys of objects are skipped."""
    opened = _ARRAY_OPENED.search(text)
    if not opened:
        return []
    found = []
    for match in _JSON_STRING.finditer(text, opened.start()):
        if match[3] is not None:
            break
        if match[2]:
            continue
        try:
            found.append(str(json.loads(f'"{match[1]}"', strict=False)))
        except ValueError:
            found.append(match[1])
    return found


def _single_quoted(text: str) -> list[str]:
    """Read an array with single quotes, as Python prints lists."""
    start = text.find("['")
    if start < 0:
        return []
    end = text.find("']", start)
    inner = text[start + 2 : end if end >= 0 else len(text)]
    return re.split(r"'\s*,\s*'", inner)


def _list_items(text: str) -> list[str]:
    """Read numbered or bulleted lines; a line without a marker continues the item above it."""
    items: list[str] = []
    open_item = False
    for line in text.splitlines():
        match = _LIST_ITEM.match(line)
        if match:
            items.append(match[1])
            open_item = True
        elif not line.strip() or line.lstrip().startswith("```"):
            open_item = False
        elif open_item:
            items[-1] += " " + line.strip()
    return items


def _clean(item: str) -> str:
    """Remove what belongs to the list and not to the text: surrounding quotes, bold markers, a trailing comma."""
    item = item.strip()
    item = re.sub(r'^["“]([^"“”]*)["”],?$', r"\1", item).strip()
    return re.sub(r"^\*\*(.+?)\*\*", r"\1", item).strip()


_TOLERANT: tuple[tuple[str, Callable[[str], list[str]]], ...] = (
    ("json", _json_anywhere),
    ("json cut off", _json_cut_off),
    ("single quotes", _single_quoted),
    ("list", _list_items),
)
