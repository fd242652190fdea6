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


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, with or without a byte order mark, its lines ended by line feeds.

    Raises OSError as `read_regular` does, also for what is no such text.
    """
    try:
        text = read_regular(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise OSError(errno.EILSEQ, "it is not UTF-8 text", str(path)) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_start(path: Path) -> bytes:
    """The first few hundred bytes of a regular file."""
    with path.open("rb") as file:
        return file.read(300)
