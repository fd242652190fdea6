"""Where measured tools keep their stores: beside the project, on the disk that a user's own store would be on.

Nothing is deleted before the end: for half a minute after thousands of files were deleted, some file systems (ext4
without a journal) take ten times as long to make new ones, and that would be what is measured.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_SCRATCH = Path(__file__).parents[1] / ".scratch"


@contextmanager
def scratch_folders() -> Iterator[Callable[[], Path]]:
    """Makes empty folders; all are gone afterwards."""
    _SCRATCH.mkdir(exist_ok=True)
    made: list[str] = []

    def make() -> Path:
        made.append(tempfile.mkdtemp(dir=_SCRATCH))
        return Path(made[-1])

    try:
        yield make
    finally:
        for folder in made:
            shutil.rmtree(folder, ignore_errors=True)
