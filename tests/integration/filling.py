"""Fills in judge files as a judge would, with scores that depend on nothing but the slot."""

import json
import random
from pathlib import Path
from typing import Any


def fill(path: Path) -> dict[str, Any]:
    """Scores every item of the file in place; returns what the file holds now."""
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for item in data["items"]:
        drawn = random.Random(item["slot"])
        for criterion, scale in data["scales"].items():
            item["scores"][criterion] = drawn.randint(scale["min"], scale["max"])
    path.write_text(json.dumps(data), encoding="utf-8")
    return data
