"""Puts a backup in place of a home that is gone.

Everything is written to a folder beside the home and checked there; then that folder becomes the home, in one step. So
a restore that is killed leaves nothing, or the whole home.
"""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tipbench.core.backups import note_backup
from tipbench.core.errors import InvalidInput, LockTaken
from tipbench.core.files import fsync_dir, make_private_folder, private_folder
from tipbench.core.locks import try_lock
from tipbench.core.untrusted import printable
from tipbench.maintenance.archive import ArchiveReader, Damaged, Head
from tipbench.maintenance.relocation import relocate

STAGE = ".restoring"
_EMPTY = frozenset(("lost+found", STAGE))  # what a home may hold that counts as empty


class Restored(NamedTuple):
    head: Head
    files: int


def restore(path: Path, home: Path, watch: Callable[[int], None]) -> Restored:
    """Restore a backup to a home that does not exist or is empty; `watch` gets the size of each file.

    Raises InvalidInput, with nothing changed, unless the backup is whole and the home is empty.
    """
    path = path.absolute()
    place = home.resolve()
    _check_empty(place)
    with _open_file(path) as file, _staged(place) as stage:
        try:
            archive = ArchiveReader(file)
            files = archive.extract(stage, watch)
        except Damaged as damage:
            raise InvalidInput(
                f"{path} is not a whole backup: {printable(str(damage), 200)}. Nothing was restored; use another one"
            ) from damage
        except InvalidInput as error:
            raise InvalidInput(f"{path} can't be restored: {error}") from error
        if archive.head.home != str(home):
            _relocate(path, stage, Path(archive.head.home), home)
        note_backup(stage, path, path.stat().st_mtime * 1000)  # it holds all that the home holds
        os.sync()
        _put_in_place(stage, place)
    return Restored(archive.head, files)


def abandoned_stage(home: Path) -> Path | None:
    """Return the folder beside a home that a killed restore left; None if there is none."""
    stage = _beside(home.resolve())
    if not stage.is_dir():
        return None
    lock = os.open(stage, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return stage if try_lock(lock) else None
    finally:
        os.close(lock)


def _beside(place: Path) -> Path:
    return place.with_name(f".{place.name}{STAGE}")


def _relocate(path: Path, stage: Path, old: Path, new: Path) -> None:
    try:
        relocate(stage, old, new)
    except (sqlite3.Error, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(
            f"{path} can't be restored to {new}, because a file in it is not as tipbench writes it "
            f"({printable(str(error), 200)}); restore it to {old}"
        ) from error


def _check_empty(place: Path) -> None:
    """Raise InvalidInput if there is anything that a restore would mix with."""
    if not place.exists():
        return
    if not place.is_dir():
        raise InvalidInput(f"{place} is not a folder; TIPBENCH_HOME says where to restore to")
    names = {entry.name for entry in place.iterdir()}
    if STAGE in names and not names <= _EMPTY:
        raise InvalidInput(
            f"{place} holds a part of a backup, because restoring was cut off; empty it and restore again"
        )
    if not names <= _EMPTY:
        raise InvalidInput(
            f"{place} is not empty, and nothing in it is replaced; stop what runs there and move it away: "
            f"mv {place} {place}.before"
        )


@contextmanager
def _open_file(path: Path) -> Iterator[BinaryIO]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise InvalidInput(f"{path} can't be read: {error.strerror or error}") from None
    with file:
        yield file


@contextmanager
def _staged(place: Path) -> Iterator[Path]:
    """Yield an empty folder on the same file system, which is removed unless it is put in place.

    It is inside the home where the home can't be replaced: a mount point, or a folder in one of somebody else's.
    """
    make_private_folder(place.parent)
    inside = place.is_dir() and (place.is_mount() or not os.access(place.parent, os.W_OK))
    stage = place / STAGE if inside else _beside(place)
    private_folder(stage)
    lock = os.open(stage, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not try_lock(lock):
            raise LockTaken(f"another process is restoring {place}; wait until it is done")
        for left in stage.iterdir():  # by one that was killed
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        try:
            yield stage
        except BaseException:
            shutil.rmtree(stage)
            raise
    finally:
        os.close(lock)


def _put_in_place(stage: Path, place: Path) -> None:
    if stage.parent != place:
        stage.rename(place)
        fsync_dir(place.parent)
        return
    for entry in stage.iterdir():
        entry.rename(place / entry.name)
    stage.rmdir()
    fsync_dir(place)
