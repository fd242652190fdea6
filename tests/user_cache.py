"""Real parts that are too large for the repository: brought into the user's cache once, and used from there."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path


def cache_folder(name: str) -> Path:
    """The folder of one real part in the cache of whoever runs the tests."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / f"tipbench-{name}"


@contextlib.contextmanager
def locked(cache: Path) -> Iterator[None]:
    """One process at a time; the lock ends with the process, also when it is killed."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def built_once(cache: Path, name: str, build: Callable[[Path], None]) -> Path:
    """The folder `name` in the cache, filled by `build` if it is not there; nobody sees one that is half done."""
    with locked(cache):
        target = cache / name
        if not target.is_dir():
            for leftover in cache.glob("building-*"):
                shutil.rmtree(leftover, ignore_errors=True)
            with tempfile.TemporaryDirectory(prefix="building-", dir=cache) as building:
                filled = Path(building, name)
                filled.mkdir()
                build(filled)
                filled.rename(target)
    return target
