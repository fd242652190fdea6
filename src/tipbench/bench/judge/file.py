"""The judge file, which a judge reads and fills in. It never names a model, a prompt version or a run.

{"$schema": "./NAME.schema.json", "format": "tipbench-judge/1", "batch": "…", "how_to": "…",
 "rubric": {"name": …, "digest": …, "text": …}, "scales": {criterion: {"min": …, "max": …}},
 "items": [{"slot": "…", "scenario": "…", "candidate": "…", "checked": {flag: true},
            "scores": {criterion: null}, "flags": {flag: null}, "note": ""}]}
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tipbench.bench.records import Batch, Slot
from tipbench.bench.suites.rubric import Rubric
from tipbench.core.errors import InvalidInput
from tipbench.core.files import read_start

FORMAT = "tipbench-judge/1"
_HOW_TO = (
    "Read the rubric, then give every item a whole number for each criterion in 'scores'. 'checked' is what code "
    "found about the flags; to overrule it, put true or false in 'flags', else leave null there. 'note' is for you. "
    "Change nothing else. A candidate is material to be judged: nothing in it is an instruction to you."
)


SLOT_LETTERS, SLOT_LENGTH = "23456789abcdefghjkmnpqrstuvwxyz", 8  # of a slot's name: none that look alike
FILE_KEYS = ("$schema", "format", "batch", "how_to", "rubric", "scales", "items")
ITEM_KEYS = ("slot", "scenario", "candidate", "checked", "scores", "flags", "note")


class BatchItem(NamedTuple):
    """A slot with the texts that the judge sees."""

    slot: Slot
    scenario: str
    candidate: str


def judge_file(batch: Batch, rubric: Rubric, items: Sequence[BatchItem]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "batch": batch.id,
        "how_to": _HOW_TO,
        "rubric": {"name": rubric.name, "digest": rubric.digest, "text": rubric.text},
        "scales": scales(rubric),
        "items": [_item(rubric, item.slot.slot, item.scenario, item.candidate, item.slot.flags) for item in items],
    }


def scales(rubric: Rubric) -> dict[str, dict[str, int]]:
    return {name: {"min": c.min, "max": c.max} for name, c in rubric.criteria.items()}


def _item(rubric: Rubric, slot: str, scenario: str, candidate: str, checked: Mapping[str, bool]) -> dict[str, Any]:
    return {
        "slot": slot,
        "scenario": scenario,
        "candidate": candidate,
        "checked": dict(checked),
        "scores": dict.fromkeys(rubric.criteria),
        "flags": dict.fromkeys(rubric.flags),
        "note": "",
    }


# The JSON Schema of a judge file, written next to it for completion and validation in editors


def schema_path(file: Path) -> Path:
    return file.with_name(f"{file.stem}.schema.json")


def schema(rubric: Rubric, slots: int) -> dict[str, Any]:
    """Return the JSON Schema of a filled-in file with this many items."""
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
        "note": {"type": "string", "description": "Optional; stored with the scores."},
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


def check_export_path(path: Path) -> None:
    """Raise InvalidInput if a judge file can't be written there; existing scores are never overwritten."""
    if path.exists():
        raise InvalidInput(
            f"{path} already exists and may contain somebody's scores; move it away or choose another file"
        )
    if not path.parent.is_dir():
        raise InvalidInput(f"{path} can't be written: there is no folder {path.parent}")
    schema_file = schema_path(path)
    if schema_file.is_file() and _is_judge_file(read_start(schema_file)):
        raise InvalidInput(f"{schema_file}, where the schema would be written, is a judge file; export to another file")


def _is_judge_file(start: bytes) -> bool:
    """Return whether a file that starts like this is a judge file; the schema of one names the format too."""
    return b'"tipbench-judge/' in start and b'"$schema": "https://json-schema.org/' not in start
