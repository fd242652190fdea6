"""Finds scores in what an agent or a program answered: JSON, prose around it, code fences, a program's own envelope.

Scores alone are keyed by slot: {"SLOT": {"relevance": 4, "tone": 5, "note": "…"}}. Slots are random, so that no text
that is being judged can name one: whatever names a slot of the batch comes from the judge.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from tipbench.bench.judge.verify import as_item, reject_duplicate_keys

_MAX_DEPTH = 4  # of texts inside of texts: an envelope's result may be JSON, or prose with JSON in it
_MAX_VALUES = 1_000  # JSON values that are looked at in one text
_OBJECT = re.compile(r'"([A-Za-z0-9]{1,64})"\s*:\s*(?=\{)')
_START = re.compile(r"[\[{]")
_DECODER = json.JSONDecoder(object_pairs_hook=reject_duplicate_keys)
Given = dict[str, Any]  # what a judge gave one item: criteria, flags and a note, by name


@dataclass(frozen=True)
class Usage:
    """What an agent says that its answer took."""

    cost_usd: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.cost_usd + other.cost_usd,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )


def find_scores(text: str, slots: Collection[str]) -> dict[str, Given]:
    """Return what the text gives to slots of the batch; the last one counts if a slot is named twice."""
    found: dict[str, Given] = {}
    for part in _texts(text, _MAX_DEPTH):
        for match in _OBJECT.finditer(part):
            if match[1] in slots:
                value = _decoded(part, match.end())
                if isinstance(value, dict):
                    found[match[1]] = _flat(value)
        for value in _values(part):
            found |= _listed(value, slots)
    return found


def filled(file: Mapping[str, Any], scores: Mapping[str, Given]) -> dict[str, Any]:
    """Return a judge file with these scores in it; other items stay as they are."""
    items = []
    for item in file["items"]:
        if item["slot"] in scores:
            given = as_item(scores[item["slot"]], item["flags"])
            item = {**item, **given, "flags": {**item["flags"], **given["flags"]}}
        items.append(item)
    return {**file, "items": items}


def find_usage(text: str) -> Usage:
    """Return the cost and tokens in a program's envelope, as far as it tells them."""
    total = Usage()
    for value in _values(text):
        if isinstance(value, dict):
            usage = value.get("usage")
            tokens = usage if isinstance(usage, dict) else {}
            read = sum(
                _whole(tokens.get(key))
                for key in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "prompt_tokens")
            )
            cost = value.get("total_cost_usd", value.get("cost_usd"))
            written = _whole(tokens.get("output_tokens")) or _whole(tokens.get("completion_tokens"))
            total += Usage(_amount(cost), read, written)
    return total


def find_error(text: str) -> str:
    """Return the error that a program's envelope reports; empty if it reports none."""
    for value in _values(text):
        if isinstance(value, dict) and value.get("is_error") is True:
            return str(value.get("result") or value.get("subtype") or "it reports an error")
    return ""


def _flat(value: Mapping[str, Any]) -> Given:
    """Return an item's scores in one object, also if they came in the form of a judge file's item."""
    nested = [value[key] for key in ("scores", "flags") if isinstance(value.get(key), dict)]
    if not nested:
        return dict(value)
    flat = {name: one for part in nested for name, one in part.items() if one is not None}
    return {**flat, **({"note": value["note"]} if value.get("note") else {})}


def _listed(value: Any, slots: Collection[str]) -> dict[str, Given]:
    """Return the scores in a list of items that name their slots, such as a whole judge file."""
    items = value.get("items") if isinstance(value, dict) else value
    found = {}
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and isinstance(item.get("slot"), str) and item["slot"] in slots:
            given = _flat(item) if isinstance(item.get("scores"), dict) else {**item}
            given.pop("slot", None)
            if any(one is not None for name, one in given.items() if name != "note"):
                found[item["slot"]] = given
    return found


def _texts(text: str, depth: int) -> Iterator[str]:
    """Yield the text, and the texts inside of its JSON that may hold JSON themselves."""
    yield text
    if depth:
        for value in _values(text):
            for inner in _strings(value):
                if "{" in inner:
                    yield from _texts(inner, depth - 1)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)


def _values(text: str) -> Iterator[Any]:
    """Yield the JSON objects and lists that stand in a text one after the other."""
    position = 0
    for _ in range(_MAX_VALUES):
        match = _START.search(text, position)
        if match is None:
            return
        try:
            value, position = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            position = match.end()
        else:
            yield value


def _decoded(text: str, start: int) -> Any:
    try:
        return _DECODER.raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return None


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _amount(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and isfinite(value) and value > 0 else 0.0
