"""What killed processes left behind, and its removal.

Nothing that a living process uses is touched: each part is looked at under the lock of whoever uses it, and where there
is none, because it is used for a moment only, after a day. All of it may be cut off anywhere, and be done again.
"""

import os
import re
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from tipbench.bench.collect.delivery import deliver_all
from tipbench.bench.collect.journal import undelivered
from tipbench.bench.compare.snapshot import forget_abandoned_writers
from tipbench.bench.engines.catalog import CATALOG, Engines
from tipbench.bench.engines.interface import Engine
from tipbench.bench.engines.residency import leftover_models, unload_leftover_models
from tipbench.bench.tracking.artifacts import abandoned_folders, artifacts_folder
from tipbench.bench.tracking.store import RunStore
from tipbench.bench.tracking.write_markers import writers
from tipbench.core.backups import backup_lock_path
from tipbench.core.errors import EngineError, LockTaken, StateError, TipbenchError
from tipbench.core.paths import database_path, journal_folder, snapshot_folder, state_folder
from tipbench.core.settings import Settings
from tipbench.core.text import counted
from tipbench.maintenance.backup import backup_lock, leftover_of
from tipbench.maintenance.restore import abandoned_stage
from tipbench.recommender.store.files import FileStore
from tipbench.recommender.store.journal import left_segments

_DAY_S = 86_400.0
_TEMPORARY = re.compile(r"\..*\.part|\.pull-.*")
_SOCKET = "mlflow.sock"
_OF_MLFLOW = {_SOCKET, "mlflow.log"}


class Leftover(NamedTuple):
    what: str
    outcome: str = ""  # what was done about it, or why it was not
    mended: bool | None = None  # None if nothing was to be done


class Repair:
    """Looks for leftovers and, with `mend`, removes them."""

    def __init__(self, settings: Settings, clock: Callable[[], float], mend: bool) -> None:
        self._settings = settings
        self._home = settings.home
        self._now_s = clock()
        self._mend = mend

    def in_home(self) -> Iterator[Leftover]:
        if self._home.is_dir():
            yield from self._cells()
            yield from self._states()
            yield from self._folders_of_runs()
            yield from self._unfinished_copies()
            yield from self._temporary_files()
        yield from self._mlflow_folders()

    def writers(self, store: RunStore) -> Iterator[Leftover]:
        """Find the markers of writers that did not finish; comparing reads everything anew as long as there are any."""
        folder = snapshot_folder(self._home)
        for experiment in store.experiments(""):
            found = len(writers(experiment))
            if not found:
                continue
            what = f"{counted(found, 'mark')} of writers to '{experiment.name}' that are at work or were killed"
            if not self._mend:
                yield Leftover(what)
            elif found == forget_abandoned_writers(store, experiment, folder, self._now_s):
                yield Leftover(what, "removed", True)
            else:
                yield Leftover(what, "they may be at work; try again in half an hour", False)

    def models(self, engines: Engines) -> Iterator[Leftover]:
        """Find models that interrupted collections may have left in memory."""
        for name in CATALOG:
            with suppress(TipbenchError):  # the engine is not set up
                engine = engines.named(name)
                models = leftover_models(engine, self._home)
                if models:
                    yield self._unloaded(engine, f"{', '.join(models)} may still be loaded on {engine.address}")

    def _unloaded(self, engine: Engine, what: str) -> Leftover:
        if not self._mend:
            return Leftover(what)
        try:
            unload_leftover_models(engine, self._home, lambda _: None)
        except EngineError as error:
            return Leftover(what, str(error), False)
        return Leftover(what, "unloaded", True)

    def _cells(self) -> Iterator[Leftover]:
        left = [one for one in undelivered(journal_folder(self._home)) if not one.in_use]
        if not left:
            return
        cells = counted(sum(one.cells for one in left), "undelivered cell")
        what = f"{counted(len(left), 'journal')} of ended collections with {cells}"
        if not self._mend:
            yield Leftover(what)
            return
        delivered = list(deliver_all(self._settings))
        problems = [f"{synced.experiment}: {synced.problem}" for synced in delivered if synced.problem]
        done = counted(sum(synced.cells for synced in delivered), "cell")
        yield Leftover(what, "; ".join([f"{done} delivered", *problems]), not problems)

    def _states(self) -> Iterator[Leftover]:
        """Find journals of users' states whose processes were killed; opening the states recovers what they hold."""
        folder = state_folder(self._home)
        with left_segments(folder / ".journal") as left:
            count = len(left)
        if not count:
            return
        what = f"{counted(count, 'journal')} of users' states, of ended services"
        if not self._mend:
            yield Leftover(what)
            return
        try:
            with closing(FileStore(folder)):
                yield Leftover(what, "recovered", True)
        except (StateError, LockTaken) as error:
            yield Leftover(what, str(error), False)

    def _folders_of_runs(self) -> Iterator[Leftover]:
        database = database_path(self._home)
        if not database.exists():
            return
        found = abandoned_folders(database, self._now_s, claim=self._mend)
        if found is None:
            if self._mend:
                yield Leftover("folders of runs", "not looked at while runs are being written; try again", False)
        elif found:
            yield self._removed(f"{counted(len(found), 'folder')} of files that belong to no run", found)

    def _unfinished_copies(self) -> Iterator[Leftover]:
        if backup_lock_path(self._home).exists():
            with suppress(LockTaken), backup_lock(self._home) as lock:
                left = leftover_of(lock)
                if left:
                    yield self._removed("a backup that was cut off", [left])
        stage = abandoned_stage(self._home)
        if stage:
            yield self._removed("restoring that was cut off", [stage])

    def _temporary_files(self) -> Iterator[Leftover]:
        found = []
        others = {artifacts_folder(database_path(self._home)), self._home / "tmp"}
        for folder, folders, names in os.walk(self._home):
            folders[:] = [name for name in folders if Path(folder, name) not in others]
            in_journal = Path(folder) == journal_folder(self._home)
            for name in (*folders, *names):
                if _TEMPORARY.fullmatch(name) or (in_journal and name.endswith(".part")):
                    found += [path for path in (Path(folder, name),) if self._is_older(path, _DAY_S)]
        if found:
            yield self._removed(f"{counted(len(found), 'temporary file')} of processes that were killed", found)

    def _mlflow_folders(self) -> Iterator[Leftover]:
        """Find the folders of killed MLflow processes, in the system's folder for temporary files."""
        folders = Path(tempfile.gettempdir()).glob("tipbench-*")
        found = [folder for folder in folders if _is_of_mlflow(folder) and self._is_older(folder, _DAY_S)]
        if found:
            yield self._removed(f"{counted(len(found), 'folder')} of MLflow processes that were killed", found)

    def _is_older(self, path: Path, age_s: float) -> bool:
        try:
            return self._now_s - path.lstat().st_mtime > age_s
        except FileNotFoundError:
            return False

    def _removed(self, what: str, paths: Sequence[Path]) -> Leftover:
        what += f": {paths[0]}{', …' if len(paths) > 1 else ''}"
        if not self._mend:
            return Leftover(what)
        try:
            for path in paths:
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
        except OSError as error:
            return Leftover(what, f"{error.filename} can't be removed: {error.strerror}", False)
        return Leftover(what, "removed", True)


def _is_of_mlflow(folder: Path) -> bool:
    """Return whether this is the folder of an MLflow process of ours that has ended."""
    try:
        if folder.lstat().st_uid != os.getuid() or not {entry.name for entry in folder.iterdir()} <= _OF_MLFLOW:
            return False
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(folder / _SOCKET))
    except (ConnectionRefusedError, FileNotFoundError):
        return True
    except OSError:  # another user's
        return False
    return False
