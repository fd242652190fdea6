"""A look at an experiment, kept in a file for the next time.

What another version wrote, or what is of another store, counts as nothing cached. The file goes by columns, because
most of a cell's values repeat. It holds a look or, while somebody writes to the experiment, since when their marks
were seen.
"""

import json
from collections.abc import Mapping
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from tipbench.bench.compare.snapshot import RubricSeen, Snapshot
from tipbench.bench.records import JudgeNote, StoredCell
from tipbench.bench.tracking.batches import BatchSummary
from tipbench.bench.tracking.interface import Experiment
from tipbench.core.cache import DiskCache
from tipbench.core.identity import data_digest
from tipbench.core.version import __version__

MOST_FILES = 50
_KINDS = (StoredCell, JudgeNote, BatchSummary, RubricSeen)
_FORMAT = data_digest([1, *([kind.__name__, *(field.name for field in fields(kind))] for kind in _KINDS)])
_CELL = tuple(field.name for field in fields(StoredCell))
_FEW = (
    "factors",
    "settings",
    "judges",
    "metrics",
)  # of which there are few different ones: each stands once in a table


class SnapshotDiskCache:
    """The file of one experiment."""

    def __init__(self, folder: Path, address: str, experiment_id: str) -> None:
        self._of = [_FORMAT, __version__, address, experiment_id]
        self._cache = DiskCache(folder, MOST_FILES)
        self._name = f"{data_digest([address, experiment_id])[:32]}.json"

    def load(self, experiment: Experiment, state: str) -> Snapshot | None:
        """What was seen while the experiment's marks were in this state; None when that was not kept."""
        data = self._content("look")
        if data is None:
            return None
        try:
            if data["state"] != state:
                return None
            return Snapshot(
                experiment,
                _cells(data["cells"]),
                tuple(BatchSummary(*batch) for batch in data["batches"]),
                RubricSeen(*data["rubric"]) if data["rubric"] else None,
            )
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            return None

    def save(self, snapshot: Snapshot, state: str) -> None:
        if snapshot.rubric and snapshot.rubric.problem:
            return
        data = {
            "state": state,
            "cells": _columns(snapshot.cells),
            "batches": [astuple(batch) for batch in snapshot.batches],
            "rubric": astuple(snapshot.rubric) if snapshot.rubric else None,
        }
        self._write("look", data)

    def writers(self) -> dict[tuple[str, str], float]:
        """Since when the marks of writers were seen, each with its value."""
        data = self._content("writers")
        try:
            return {(str(key), str(value)): float(since) for key, value, since in data or ()}
        except (TypeError, ValueError):
            return {}

    def save_writers(self, seen: Mapping[tuple[str, str], float]) -> None:
        """In the place of the look, which no mark will ever fit again."""
        self._write("writers", [[key, value, since] for (key, value), since in seen.items()])

    def _content(self, kind: str) -> Any:
        data = self._cache.load(self._name)
        try:
            return data[kind] if data["of"] == self._of and kind in data else None
        except (KeyError, TypeError):
            return None

    def _write(self, kind: str, data: Any) -> None:
        self._cache.save(self._name, {"of": self._of, kind: data})


def _columns(cells: tuple[StoredCell, ...]) -> dict[str, Any]:
    columns: dict[str, list[Any]] = {name: [getattr(cell, name) for cell in cells] for name in _CELL}
    values = [list(metrics.values()) for metrics in columns["metrics"]]
    columns["metrics"] = [list(metrics) for metrics in columns["metrics"]]  # their names
    columns["judges"] = [[astuple(note) for note in notes] for notes in columns["judges"]]
    tables: dict[str, list[Any]] = {}
    for name in _FEW:
        found: dict[str, int] = {}
        texts = [json.dumps(value, allow_nan=False) for value in columns[name]]
        columns[name] = [found.setdefault(text, len(found)) for text in texts]
        tables[name] = [json.loads(text) for text in found]
    return {"columns": columns, "tables": tables, "values": values}


def _cells(data: dict[str, Any]) -> tuple[StoredCell, ...]:
    columns, tables = data["columns"], data["tables"]
    tables["judges"] = [tuple(JudgeNote(*note) for note in notes) for notes in tables["judges"]]
    for name in _FEW:
        table = tables[name]
        columns[name] = [table[number] for number in columns[name]]
    pairs = zip(columns["metrics"], data["values"], strict=True)
    columns["metrics"] = [dict(zip(names, values, strict=True)) for names, values in pairs]
    return tuple(map(StoredCell, *(columns[name] for name in _CELL)))
