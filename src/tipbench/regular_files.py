"""Files that people name: read whole, if they are regular files of a reasonable size."""

import errno
import os
import stat
from pathlib import Path

MOST_BYTES = 10_000_000
_PIECE = 1_048_576


def read_regular(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """The content of a file. Raises OSError, with a plain `strerror`, also for a pipe, a device or a larger file."""
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe without a writer is not waited for
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        content = bytearray()
        while piece := os.read(opened, min(_PIECE, most_bytes + 1 - len(content))):
            content += piece
            if len(content) > most_bytes:
                raise OSError(errno.EFBIG, f"it is larger than {most_bytes / 1_000_000:g} MB", str(path))
        return bytes(content)
    finally:
        os.close(opened)


def read_start(path: Path) -> bytes:
    """The first few hundred bytes of a regular file."""
    with path.open("rb") as file:
        return file.read(300)
