"""A consistent copy of a home in one file, made while everything in the home is at work.

Nothing is stopped: each part is copied as it is at one moment, and parts one after the other, in an order for which any
moments will do. What refers to something is written after it, so it is copied before it; what is removed once it is
somewhere else is copied before that.

1. What waits to be delivered or handed in, users' states, and the server's databases.
2. The database of results. A cell that was in a journal is in the database by then, or in the copied journal, or both.
3. Everything else: files of the runs that the copied database has, logs, records, settings.

So whatever was acknowledged before the backup began is in it.
"""

import os
import re
import shutil
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from tipbench.bench.collect.journal import copy_journal
from tipbench.bench.tracking.artifacts import artifacts_folder, is_run_folder, stored_run_ids
from tipbench.core.backups import backup_lock_path, note_backup
from tipbench.core.errors import InvalidInput, LockTaken, StateDamaged, StateRefused
from tipbench.core.files import PRIVATE, fsync_dir, make_private_folder, temporary_path
from tipbench.core.locks import try_lock
from tipbench.core.paths import database_path, journal_folder, state_folder
from tipbench.core.sqlite import copy_database, is_database
from tipbench.core.text import iso_second
from tipbench.core.version import __version__
from tipbench.maintenance.archive import FORMAT, ArchiveWriter, Head
from tipbench.recommender.promotion.files import PROMOTIONS, FilePromotions
from tipbench.recommender.store.document import file_name, foreign_error, key_of
from tipbench.recommender.store.document_cache import read_state_file
from tipbench.recommender.store.files import FileStore

Watch = Callable[[int, int], None]  # bytes copied, and of how many
# Not copied: what can be made anew, locks, files that were being written, and what belongs to a copied database.
_LEFT_OUT = re.compile(
    r"(cache|locks|weights|tmp|recommender/state/\.(locks|journal|spare-\d+)|server/([a-z]+\.)?lock)(/.*)?"
    r"|(.*/)?\..*\.(part|lock)|journal/.*\.part|recommender/state/.*\.new|.*\.db-(wal|shm|journal)"
)


class Backup(NamedTuple):
    path: Path
    files: int
    bytes: int  # of the files


def make_backup(path: Path, home: Path, clock: Callable[[], float], watch: Watch) -> Backup:
    """Copy the home to a new file, which appears at this path once it is complete.

    Raises InvalidInput if it can't be written there or something in the home is damaged, StateDamaged if a user's file
    has another user's state, LockTaken if another backup of this home is being made, or its states are being moved.
    """
    path = _checked(path, home)
    with backup_lock(home) as lock:
        if left := leftover_of(lock):
            shutil.rmtree(left)
        scratch = Path(temporary_path(path, os.urandom(4).hex()))
        _write(lock, str(scratch))
        try:
            scratch.mkdir(mode=0o700)
            with open(scratch / "backup", "xb", opener=_private) as file:
                head = Head(FORMAT, __version__, str(home), iso_second(clock() * 1000))
                with ArchiveWriter(file, head) as writer:
                    _Copying(home, scratch, writer, watch).run()
                os.fsync(file.fileno())
            note_backup(home, path, clock() * 1000)  # first: what is noted and not there is no backup
            (scratch / "backup").replace(path)
            fsync_dir(path.parent)
        except OSError as error:  # that of a full disk names no file
            raise OSError(error.errno, error.strerror, error.filename or str(path)) from error
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        _write(lock, "")
    return Backup(path, writer.files, writer.bytes)


@contextmanager
def backup_lock(home: Path) -> Iterator[IO[str]]:
    """Hold the lock of whoever makes a backup of this home; its file names the backup's temporary folder."""
    lock_path = backup_lock_path(home)
    make_private_folder(lock_path.parent)
    with lock_path.open("a+", encoding="utf-8") as lock:
        if not try_lock(lock):
            raise LockTaken(f"another backup of {home} is being made, or a user erased; wait until that is done")
        yield lock


def leftover_of(lock: IO[str]) -> Path | None:
    """Return the temporary folder of a backup that was killed; None if there is none."""
    lock.seek(0)
    left = Path(lock.read())
    return left if re.fullmatch(r"\..*\.[0-9a-f]{8}\.part", left.name) and left.is_dir() else None


def _write(lock: IO[str], content: str) -> None:
    lock.truncate(0)
    lock.write(content)
    lock.flush()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, PRIVATE)


def _checked(path: Path, home: Path) -> Path:
    """Return the absolute path; raise InvalidInput if no backup can be written there, or there is no home."""
    path = path.absolute()
    if not home.is_dir():
        raise InvalidInput(f"there is nothing to back up: {home} does not exist; TIPBENCH_HOME says where it is")
    if not path.parent.is_dir():
        raise InvalidInput(f"the folder {path.parent} does not exist; create it first")
    if path.parent.resolve().is_relative_to(home.resolve()):
        raise InvalidInput(f"{path} is inside {home}, which it would be a copy of; choose another folder")
    if os.path.lexists(path):
        raise InvalidInput(f"{path} already exists, and is not replaced; choose another name")
    return path


class _Copying:
    """Copies one home into an archive."""

    def __init__(self, home: Path, scratch: Path, writer: ArchiveWriter, watch: Watch) -> None:
        self._writer = writer
        self._home = home
        self._scratch = scratch / "copy"
        self._watch = watch
        self._done: set[str] = set()
        self._total = sum(status.st_size for _, status in _files(home))

    def run(self) -> None:
        self._copy_journals()
        self._copy_folder("judged")
        self._copy_recommender()
        for path in sorted(self._home.glob("server/*.db")):
            self._copy(f"server/{path.name}")
        known_runs = self._copy_results()
        self._done |= {"journal", "judged", "recommender/state"}
        for name, _ in _files(self._home, left_out=self._done, known_runs=known_runs):
            self._copy(name)

    def _copy_journals(self) -> None:
        for path in sorted(journal_folder(self._home).glob("*.jsonl")):
            with suppress(FileNotFoundError):  # all of it is delivered by now, and the database is copied later
                if copy_journal(path, self._scratch):
                    self._add_scratch(f"journal/{path.name}")

    def _copy_recommender(self) -> None:
        """Copy promotions before the gates and priors that they name, and states before the log of their events."""
        name = f"recommender/{PROMOTIONS}"
        with suppress(FileNotFoundError):
            self._writer.add(name, FilePromotions(self._home / name).content())
            self._done.add(name)
        with _states_in_use(state_folder(self._home)):
            for name, _ in _files(self._home, "recommender/state"):
                self._copy_state(name)

    def _copy_results(self) -> Collection[str] | None:
        """Copy the database of results; return the ids of its runs, None if there is no such database."""
        name = database_path(self._home).name
        return stored_run_ids(self._scratch) if self._copy(name) else None

    def _copy_folder(self, folder: str) -> None:
        for name, _ in _files(self._home, folder):
            self._copy(name)

    def _copy_state(self, name: str) -> None:
        """Copy a user's file: one that is replaced meanwhile may be written over while it is read.

        Raises StateDamaged for another user's document.
        """
        path = self._home / name
        try:
            content = read_state_file(str(path))
        except StateDamaged:  # it is a link
            self._copy(name)
            return
        if content is not None:
            found = key_of(content)
            if found and file_name(found) != path.name:
                raise foreign_error(path, found)
            self._writer.add(name, content)
            self._watch(self._writer.bytes, self._total)

    def _copy(self, name: str) -> bool:
        """Copy a file, unless it was removed meanwhile; return whether the scratch file is a copy of a database."""
        self._done.add(name)
        path = self._home / name
        try:
            with path.open("rb") as file:
                if not is_database(file):
                    self._writer.add_open(name, file)
                    self._watch(self._writer.bytes, self._total)
                    return False
            self._scratch.unlink(missing_ok=True)
            copy_database(path, self._scratch)
            self._add_scratch(name)
        except FileNotFoundError:
            return False
        return True

    def _add_scratch(self, name: str) -> None:
        with self._scratch.open("rb") as file:
            self._writer.add_open(name, file)
        self._watch(self._writer.bytes, self._total)


def _files(
    home: Path, folder: str = "", left_out: Collection[str] = (), known_runs: Collection[str] | None = None
) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the files below a folder of the home that belong into a backup, by their path in the home.

    Folders of runs are left out unless they are known: files are written before the database has their run, so others
    are of runs that came later, and are delivered again from a journal. Symbolic links are followed.
    """
    below = f"{folder}/" if folder else ""
    listed = f"{home}/{below}"  # not pathlib, which took a third of a backup's time
    try:
        names = os.listdir(listed)  # noqa: PTH208
    except FileNotFoundError:
        return
    # Twice, because on some file systems a file that is replaced during the first listing may be missing in it.
    for name in sorted({*names, *os.listdir(listed)}):  # noqa: PTH208
        path = below + name
        if path in left_out or _LEFT_OUT.fullmatch(path):
            continue
        try:
            status = os.stat(listed + name)  # noqa: PTH116
        except FileNotFoundError:
            continue
        if stat.S_ISREG(status.st_mode):
            yield path, status
        elif stat.S_ISDIR(status.st_mode) and _is_wanted(home, path, known_runs):
            yield from _files(home, path, left_out, known_runs)


def _is_wanted(home: Path, folder: str, known_runs: Collection[str] | None) -> bool:
    if os.path.islink(f"{home}/{folder}") and (home / folder).resolve().is_relative_to(home.resolve()):  # noqa: PTH114
        return False  # it is copied where it is
    top, *below = folder.split("/")
    is_run = is_run_folder(below) and top == artifacts_folder(database_path(home)).name
    return known_runs is None or not is_run or below[1] in known_runs


@contextmanager
def _states_in_use(folder: Path) -> Iterator[None]:
    """Hold the users' states as somebody who serves from them: they are recovered, and not moved meanwhile."""
    try:
        store = FileStore(folder) if folder.is_dir() else None
    except StateRefused:  # they were moved elsewhere, or only a part of them is here
        store = None
    try:
        yield
    finally:
        if store:
            store.close()
