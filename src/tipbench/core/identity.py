"""Content-based identity: digests of text and plain data that are the same on every machine."""

import hashlib
import json
from typing import Any

SHORT = 12


def text_digest(text: str) -> str:
    """Return the SHA-256 of a text; lone surrogates, which occur in some models' answers, are hashed as they are."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def data_digest(data: Any) -> str:
    """Return the SHA-256 of plain data (mappings, lists, strings, numbers), independent of key order."""
    return text_digest(json.dumps(data, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False))


def derived_seed(*parts: str | int) -> int:
    """Derive a seed from the parts alone; it has 31 bits, which every engine accepts."""
    return int(data_digest(list(parts))[:8], 16) & 0x7FFFFFFF
