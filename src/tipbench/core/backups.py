"""The list of a home's finished backups: they still hold whatever is removed from the home later."""

import json
import os
from pathlib import Path
from typing import NamedTuple

from tipbench.core.files import PRIVATE, fsync_dir
from tipbench.core.paths import lock_path
from tipbench.core.text import iso_second

NAME = "backups.jsonl"


class FinishedBackup(NamedTuple):
    path: Path
    finished_at: str  # such as 2026-04-27T18:05:12Z


def backup_lock_path(home: Path) -> Path:
    """Path of the lock that a backup holds while it is made; its content names the backup's temporary folder."""
    return lock_path(home, "backup")


def note_backup(home: Path, path: Path, finished_ms: float) -> None:
    """Add a backup to the list. The caller holds the backup lock, so it is the only writer."""
    line = json.dumps({"path": str(path), "finished_at": iso_second(finished_ms)}).encode() + b"\n"
    file = os.open(home / NAME, os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC, PRIVATE)
    try:
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":  # a power cut took the end of the last line
            line = b"\n" + line
        os.write(file, line)
        os.fsync(file)
    finally:
        os.close(file)
    fsync_dir(home)


def finished_backups(home: Path) -> list[FinishedBackup]:
    """Return the finished backups whose files still exist, oldest first."""
    try:
        lines = (home / NAME).read_bytes().splitlines()
    except FileNotFoundError:
        return []
    found: dict[Path, FinishedBackup] = {}
    for line in lines:
        try:
            data = json.loads(line)
            path = Path(data["path"])
            found[path] = FinishedBackup(path, str(data["finished_at"]))
        except (ValueError, KeyError, TypeError):  # a power cut took its end, and that of the backup too
            continue
    return [backup for path, backup in found.items() if path.exists()]
