"""Fills in judge files as a faithful judge would: anchors as they should be, the same text always the same."""

import copy
import json
import random
from functools import cache
from pathlib import Path
from typing import Any

from tipbench.bench.suites.load import load_suite


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
    return {
        anchor.candidate: dict(anchor.scores) for name in ("tip", "tip-pool") for anchor in load_suite(name).anchors
    }
