"""Changes the absolute paths that a home holds, for a home that is restored at another place."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from tipbench.bench.collect.journal import readdress_copy
from tipbench.bench.tracking.artifacts import move_locations
from tipbench.core.paths import database_path, journal_folder
from tipbench.core.sqlite import connect, transaction
from tipbench.core.untrusted import json_text

_SCHEMES = ("", "sqlite:///", "file://")
_FILES = ("experiments/*.json", "suites.json", "server/*/*/config.json")
_JOBS = ("server/jobs.db", "server/simulations.db")


def relocate(folder: Path, old: Path, new: Path) -> None:
    """Change the paths below `old` in this copy of a home to paths below `new`.

    They are in the database of results, in journals, in notes of where experiments are, in the list of suites, and in
    the configurations of jobs. Logs stay as they were written.
    """
    if database_path(folder).exists():
        move_locations(database_path(folder), old, new)
    moved = _Moved(old, new)
    for path in sorted(journal_folder(folder).glob("*.jsonl")):
        readdress_copy(path, moved.text)
    for pattern in _FILES:
        for path in folder.glob(pattern):
            _change_json(path, moved)
    for name in _JOBS:
        if (folder / name).exists():
            _change_jobs(folder / name, moved)


class _Moved:
    """Where paths are after the move."""

    def __init__(self, old: Path, new: Path) -> None:
        self._old, self._new = str(old), str(new)

    def text(self, text: str) -> str:
        for scheme in _SCHEMES:
            before = scheme + self._old
            if text == before or text.startswith(before + "/"):
                return scheme + self._new + text[len(before) :]
        return text

    def data(self, data: Any) -> Any:
        if isinstance(data, str):
            return self.text(data)
        if isinstance(data, list):
            return [self.data(item) for item in data]
        if isinstance(data, dict):
            return {key: self.data(value) for key, value in data.items()}
        return data


def _change_json(path: Path, moved: _Moved) -> None:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:  # as it was in the home
        return
    path.write_text(json_text(moved.data(data)), encoding="utf-8")


def _change_jobs(path: Path, moved: _Moved) -> None:
    with closing(connect(path)) as connection, transaction(connection):
        for job_id, config in connection.execute("SELECT id, config FROM job").fetchall():
            changed = json_text(moved.data(json.loads(config)), indent=None)
            connection.execute("UPDATE job SET config = ? WHERE id = ?", (changed, job_id))
