"""Looks through a database after kills: what is missing, what appears twice, what can't be read."""

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from benchmarks.parts.stored import opened
from tipbench.bench.tracking.interface import StoredRun
from tipbench.bench.tracking.runs import CELL, KIND, stored_candidates
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import TipbenchError

_CANDIDATES = 5


class Found(NamedTuple):
    cells: int  # each counted once
    doubled: int
    open: int  # runs that MLflow takes for running
    unreadable: int  # cells without their candidates as the model wrote them
    stray: int  # folders of texts that no run refers to


def total(all_found: Iterable[Found]) -> Found:
    return Found(*map(sum, zip(*all_found, strict=True)))


def look_through(database: Path, experiment: str) -> Found:
    _check_database(database)
    with opened(f"sqlite:///{database}") as store:
        found = store.experiment(experiment)
        runs = store.all_runs(found, {KIND: CELL})
        keys = {run.tags["tipbench.cell_key"] for run in runs}
        folders = {folder.name for folder in Path(found.artifact_location).iterdir()}
        return Found(
            cells=len(keys),
            doubled=len(runs) - len(keys),
            open=sum(run.status == "RUNNING" for run in runs),
            unreadable=sum(not _is_readable(store, run) for run in runs),
            stray=len(folders - {run.run_id for run in runs}),
        )


def _check_database(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        (said,) = connection.execute("PRAGMA integrity_check").fetchone()
        if said != "ok":
            raise SystemExit(f"{database} is damaged: {said}")


def _is_readable(store: RunStore, run: StoredRun) -> bool:
    """Every text is held against its digest; the candidates also against the raw answer."""
    try:
        candidates = stored_candidates(store, run).texts
        raw = store.text(run, "raw.txt")
        return bool(store.text(run, "prompt.txt") and store.text(run, "rubric.md")) and (
            list(candidates) == json.loads(raw or "null") and len(candidates) == _CANDIDATES
        )
    except TipbenchError:
        return False
