"""Fills in judge files as a faithful judge would: anchors as they should be, the same text always the same."""

import copy
import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import yaml

_SUITES = Path(__file__).parents[2] / "src" / "tipbench" / "bench" / "suites" / "data"


def filled(file: dict[str, Any]) -> dict[str, Any]:
    """A copy of the file with every item scored."""
    scored = copy.deepcopy(file)
    for item in scored["items"]:
        drawn = random.Random((item["scenario"] + item["candidate"]).encode("utf-8", "surrogatepass"))
        for criterion, scale in scored["scales"].items():
            item["scores"][criterion] = drawn.randint(scale["min"], scale["max"])
        item["scores"] |= _references().get(item["candidate"], {})
    return scored


def faithful_scores(text: str, scales: dict[str, tuple[int, int]]) -> dict[str, int]:
    """The scores of one text: as agreed on if it is an anchor, else always the same."""
    drawn = random.Random(text.encode("utf-8", "surrogatepass"))
    return {name: drawn.randint(*scale) for name, scale in scales.items()} | _references().get(text, {})


def fill(path: Path) -> dict[str, Any]:
    """Scores every item of the file in place; returns what the file holds now."""
    data = filled(json.loads(path.read_text(encoding="utf-8")))
    path.write_text(json.dumps(data), encoding="utf-8")
    return data


@cache
def _references() -> dict[str, dict[str, int]]:
    """Read from the files: loading whole suites would take a stand-in for a program longer than all else."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(_SUITES.glob("*/anchors.yaml"))]
    return {entry["candidate"]: entry["scores"] for text in texts for entry in yaml.load(text, yaml.CSafeLoader)}
