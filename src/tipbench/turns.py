"""One at a time: a lock on a file, and a word to whoever has to wait for it."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tipbench.errors import TurnTaken
from tipbench.identity import data_digest
from tipbench.private_files import make_private_folder


def lock_path(home: Path, *what: str) -> Path:
    """The file of the lock on something that is told by these words."""
    return home / "locks" / f"{data_digest(list(what))[:24]}.lock"


@contextmanager
def turn(path: Path, taken: str, wait: bool, say: Callable[[str], None]) -> Iterator[IO[str]]:
    """Holds the lock, and gives its file. `taken` says what another process is doing meanwhile."""
    make_private_folder(path.parent)
    with path.open("a+", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                raise TurnTaken(f"{taken}; without --no-wait this one would wait its turn") from None
            say(f"{taken[0].upper()}{taken[1:]}; waiting until it is done (Ctrl-C to stop) …")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
