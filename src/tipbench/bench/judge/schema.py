"""The JSON Schema of a judge file, written next to it: editors complete by it and mark what can't be."""

from pathlib import Path
from typing import Any

from tipbench.bench.judge.file import FILE_KEYS, FORMAT, ITEM_KEYS
from tipbench.bench.suites.rubric import Rubric


def schema_path(file: Path) -> Path:
    return file.with_name(f"{file.stem}.schema.json")


def schema(rubric: Rubric, slots: int) -> dict[str, Any]:
    """What a filled-in file looks like."""
    text = {"type": "string"}
    scores = {
        name: {
            "type": ["integer", "null"],
            "minimum": criterion.min,
            "maximum": criterion.max,
            "description": criterion.question,
        }
        for name, criterion in rubric.criteria.items()
    }
    flags = {name: {"enum": [True, False, None], "description": flag.question} for name, flag in rubric.flags.items()}
    checked = {name: {"type": "boolean"} for name, flag in rubric.flags.items() if flag.check}
    item = {
        "slot": text,
        "scenario": text,
        "candidate": text,
        "checked": _object(checked),
        "scores": _object(scores),
        "flags": _object(flags),
        "note": {"type": "string", "description": "Free; kept with the scores."},
    }
    assert tuple(item) == ITEM_KEYS
    whole = {
        "$schema": text,
        "format": {"const": FORMAT},
        "batch": text,
        "how_to": text,
        "rubric": _object({"name": text, "digest": text, "text": text}),
        "scales": {"type": "object"},
        "items": {"type": "array", "minItems": slots, "maxItems": slots, "items": _object(item)},
    }
    assert tuple(whole) == FILE_KEYS
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Scores by {rubric.name}",
        **_object(whole),
    }


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    required = [name for name in properties if name != "$schema"]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
