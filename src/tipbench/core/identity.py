"""Identity is content: digests of texts and of plain data, the same on every machine."""

import hashlib
import json
from typing import Any

SHORT = 12


def text_digest(text: str) -> str:
    """SHA-256 of a text; lone surrogates, which some models' answers hold, are digested as they are."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def data_digest(data: Any) -> str:
    """SHA-256 of plain data (mappings, lists, strings, numbers), independent of the order of keys."""
    return text_digest(json.dumps(data, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False))


def derived_seed(*parts: str | int) -> int:
    """A 31-bit seed (every engine takes that) that depends on nothing but its parts."""
    return int(data_digest(list(parts))[:8], 16) & 0x7FFFFFFF
