"""Fills in judge files as a judge would, with scores that depend on nothing but the slot."""

import copy
import json
import random
from pathlib import Path
from typing import Any


def filled(file: dict[str, Any]) -> dict[str, Any]:
    """A copy of the file with every item scored."""
    scored = copy.deepcopy(file)
    for item in scored["items"]:
        drawn = random.Random(item["slot"])
        for criterion, scale in scored["scales"].items():
            item["scores"][criterion] = drawn.randint(scale["min"], scale["max"])
    return scored


def fill(path: Path) -> dict[str, Any]:
    """Scores every item of the file in place; returns what the file holds now."""
    data = filled(json.loads(path.read_text(encoding="utf-8")))
    path.write_text(json.dumps(data), encoding="utf-8")
    return data
