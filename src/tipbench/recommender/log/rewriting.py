"""Take lines out of a log while processes append to it: those of a user, or those that are too old.

A segment is sealed first, after which nobody appends to it. What stays of it is written to its next version, then it is
removed. Killed in between, nothing is lost or there twice: as soon as a next version is complete, only that counts.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tipbench.core.files import PRIVATE, atomic_write, fsync_dir, seal
from tipbench.core.locks import exclusive, lock_until
from tipbench.core.paths import decisions_folder, lock_path, signals_folder
from tipbench.recommender.log.segmented_log import LOCK_TIMEOUT_S, lock_error, next_version, segments

Matches = Callable[[bytes], bool]  # of a line, which has its line break unless it is torn, or being written


@contextmanager
def exclusive_logs(home: Path, notify: Callable[[str], None]) -> Iterator[None]:
    """Be the only process that takes lines out of this home's logs; finish what a killed one began.

    A backup under way would miss files that get another name meanwhile, and is not in the list of backups yet.
    """
    backup = exclusive(lock_path(home, "backup"), "a backup is being made", wait=True, notify=notify)
    activity = "another 'tipbench recommend erase' or 'tipbench prune' is at work"
    with backup, exclusive(lock_path(home, "recommender", "logs"), activity, wait=True, notify=notify):
        for folder in (decisions_folder(home), signals_folder(home)):
            _remove_leftovers(folder)
        yield


def count_lines(folder: Path, matches: Matches) -> int:
    return sum(sum(map(matches, _lines(path))) for path in segments(folder))


def remove_lines(folder: Path, matches: Matches) -> int:
    """Remove the lines that match from all segments, so that a power cut does not bring them back; return how many.

    The caller holds `exclusive_logs`. What is appended meanwhile may stay.
    """
    removed = 0
    for path in segments(folder):
        if any(map(matches, _lines(path))):
            removed += _rewrite(path, matches)
    if removed:
        fsync_dir(folder)
    return removed


def _rewrite(path: Path, matches: Matches) -> int:
    _seal(path)
    lines = list(_lines(path))
    kept = [line for line in lines if line.endswith(b"\n") and not matches(line)]  # a torn line counts nowhere
    if kept:
        atomic_write(next_version(path), b"".join(kept), mode=PRIVATE, durable=True, sole_writer=True)
    path.unlink()
    return sum(map(matches, lines))


def _seal(path: Path) -> None:
    """Seal a segment, once the line that is being appended is in it."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not lock_until(file, time.monotonic() + LOCK_TIMEOUT_S):
            raise lock_error(path.parent)
        seal(file)
    finally:
        os.close(file)


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as lines:
        yield from lines


def _remove_leftovers(folder: Path) -> None:
    """Remove what a killed process left: a next version that is incomplete, or a version that no longer counts."""
    for path in {*folder.glob("*.jsonl"), *folder.glob(".*.part")}.difference(segments(folder)):
        path.unlink()
