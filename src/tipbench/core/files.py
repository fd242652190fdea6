"""Reading and writing files: whole or not at all, for their owner alone where that matters, regular files only.

Starting a job's supervisor imports this, so it imports little itself.
"""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from tipbench.core.errors import InvalidInput

MOST_BYTES = 10_000_000
PRIVATE = 0o600
_PUBLIC = 0o666  # less what the user's umask takes away
_CHUNK = 1_048_576


def atomic_write(
    path: str | Path, content: bytes | str, *, mode: int = _PUBLIC, durable: bool = False, sole_writer: bool = False
) -> None:
    """Write a file in one step: whoever reads it sees all of it, or the one before.

    With `durable` it is on the disk when this returns, and survives a power cut. `sole_writer` says that the caller
    holds a lock: the temporary file then has a fixed name, so what a killed process left behind is overwritten.
    """
    temporary = temporary_path(path) if sole_writer else temporary_path(path, os.urandom(4).hex())
    try:
        _write_file(temporary, content, mode, durable, exclusive=not sole_writer)
        os.replace(temporary, path)  # noqa: PTH105 - of thousands of small files pathlib took a third of the time
        if durable:
            fsync_dir(os.path.dirname(path) or ".")  # noqa: PTH120
    except BaseException as error:
        _remove(temporary)
        if isinstance(error, OSError) and error.errno:  # a full disk does not say which file had no room on it
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def atomic_create(path: Path, content: str, *, mode: int = PRIVATE) -> bool:
    """Create a file that is complete from its beginning; returns False if it exists, also if another was quicker."""
    temporary = temporary_path(path, os.urandom(8).hex())
    try:
        _write_file(temporary, content, mode, durable=False, exclusive=True)
        os.link(temporary, path)  # a rename would have replaced the other one
    except FileExistsError:
        return False
    finally:
        _remove(temporary)
    return True


def temporary_path(path: str | Path, unique: str = "") -> str:
    """The name under which a file is written before it gets its own."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{unique}.part" if unique else f".{name}.part")  # noqa: PTH118


def write_user_file(path: Path, text: str) -> None:
    """Write a file that a user named. Raises InvalidInput if that is not possible."""
    try:
        atomic_write(path, text)
    except OSError as error:
        raise InvalidInput(f"{path} can't be written: {error.strerror or error}") from None


def fsync_dir(folder: str | Path) -> None:
    """Make creations, renames and removals in a folder survive a power cut: syncing a file does not sync its name."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def open_regular(path: str | Path, flags: int = os.O_RDONLY) -> int:
    """Open a regular file; returns its descriptor. Raises OSError with a plain `strerror` for a pipe or a device."""
    opened = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, PRIVATE)  # a pipe without a writer is not waited for
    if stat.S_ISREG(os.fstat(opened).st_mode):
        return opened
    os.close(opened)
    raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def read_regular(path: str | Path, most_bytes: int = MOST_BYTES, flags: int = 0) -> bytes:
    """Read a regular file. Raises OSError as `open_regular` does, and for a file with more bytes than allowed."""
    opened = open_regular(path, os.O_RDONLY | flags)
    try:
        content = bytearray()
        while piece := os.read(opened, min(_CHUNK, most_bytes + 1 - len(content))):
            content += piece
            if len(content) > most_bytes:
                raise OSError(errno.EFBIG, f"it is larger than {most_bytes / 1_000_000:g} MB", str(path))
        return bytes(content)
    finally:
        os.close(opened)


def read_text(path: Path) -> str:
    """Read a text file in UTF-8, with or without a byte order mark, its lines ended by line feeds.

    Raises OSError as `read_regular` does, also for what is not such a text.
    """
    try:
        text = read_regular(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise OSError(errno.EILSEQ, "it is not UTF-8 text", str(path)) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_start(path: Path) -> bytes:
    """Read the first few hundred bytes of a file."""
    with path.open("rb") as file:
        return file.read(300)


def make_private_folder(folder: Path) -> None:
    """Create the folder, and those above it that are missing, with mode 0700; an existing one stays as it is."""
    if not folder.parent.exists():
        make_private_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def private_folder(folder: Path) -> Path:
    """Create the folder if need be; whatever its mode was, it is 0700 now."""
    make_private_folder(folder)
    folder.chmod(0o700)
    return folder


def is_private(folder: Path) -> bool:
    """Whether no other user may read it."""
    return not folder.stat().st_mode & 0o077


def private_file(path: Path) -> Path:
    """Create an empty file of mode 0600 where there is none; an existing one gets that mode."""
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, PRIVATE))
    path.chmod(PRIVATE)
    return path


def _write_file(path: str, content: bytes | str, mode: int, durable: bool, exclusive: bool) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.open(path, flags | (os.O_EXCL if exclusive else os.O_TRUNC), mode)
    try:
        left = memoryview(content.encode() if isinstance(content, str) else content)
        while left:
            left = left[os.write(file, left) :]
        if durable:
            os.fsync(file)
    finally:
        os.close(file)


def _remove(path: str) -> None:
    with suppress(OSError):  # what went wrong before is to be told
        os.unlink(path)  # noqa: PTH108
