"""File reading and writing: atomic writes, owner-only permissions where they matter, regular files only.

A job's supervisor imports this at start-up, so this module imports little itself.
"""

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from tipbench.core.errors import InvalidInput

MAX_BYTES = 10_000_000
PRIVATE = 0o600
_PUBLIC = 0o666  # before the umask
_SEALED = 0o400
_CHUNK = 1_048_576
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # of renameat2


def atomic_write(
    path: str | Path, content: bytes | str, *, mode: int = _PUBLIC, durable: bool = False, sole_writer: bool = False
) -> None:
    """Write a file atomically: readers see either the complete new file or the previous one.

    With `durable`, the file is on disk when this returns and survives a power failure. `sole_writer` means that the
    caller holds a lock: the temporary file then has a fixed name, so leftovers of a killed process are overwritten.
    """
    temporary = temporary_path(path) if sole_writer else temporary_path(path, os.urandom(4).hex())
    try:
        _write_file(temporary, content, mode, durable, exclusive=not sole_writer)
        os.replace(temporary, path)  # noqa: PTH105 - pathlib took a third of the time when writing thousands of small files
        if durable:
            fsync_dir(os.path.dirname(path) or ".")  # noqa: PTH120
    except BaseException as error:
        _remove(temporary)
        if isinstance(error, OSError) and error.errno:  # the error for a full disk names no file
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def write_new(path: str, content: bytes, *, mode: int = _PUBLIC) -> None:
    """Write a file that does not exist yet, where nobody looks before it is complete: a third of the system calls."""
    _write_file(path, content, mode, durable=False, exclusive=True)


def overwrite(path: str, content: bytes) -> os.stat_result:
    """Write a file in place, or a new private one, and return its status. It is not synced.

    For files that nobody else writes; whoever has it open to read may find anything in it. A file with other names too
    is left to those, as a copy of the folder made of hard links would change with it. A new file for every write would
    cost more than the write: on ext4 up to a millisecond where many files were deleted in the last minutes.
    """
    file = _open_alone(path)
    try:
        _write_all(file, content)
        os.ftruncate(file, len(content))
        return os.fstat(file)
    finally:
        os.close(file)


def exchange(path: str, other: str) -> None:
    """Exchange two files of a folder atomically. If there is no `other`, or that is not possible, rename `path` to it.

    It is not synced. Renaming over another file would make ext4 write it to disk at once, which takes several times as
    long as all the rest.
    """
    if _renameat2()(_AT_FDCWD, path.encode(), _AT_FDCWD, other.encode(), _RENAME_EXCHANGE) != 0:
        os.replace(path, other)  # noqa: PTH105


def fsync_file(path: str | Path) -> bool:
    """Make a file's content survive a power failure; return False if there is no such file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return True


def atomic_create(path: Path, content: str, *, mode: int = PRIVATE) -> bool:
    """Create a file atomically, with its content. Return False if it exists or another process creates it first."""
    temporary = temporary_path(path, os.urandom(8).hex())
    try:
        _write_file(temporary, content, mode, durable=False, exclusive=True)
        os.link(temporary, path)  # unlike a rename, this never replaces an existing file
    except FileExistsError:
        return False
    finally:
        _remove(temporary)
    return True


def temporary_path(path: str | Path, unique: str = "") -> str:
    """Return the path of the temporary file that is written before it is renamed to `path`."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{unique}.part" if unique else f".{name}.part")  # noqa: PTH118


def write_user_file(path: Path, text: str) -> None:
    """Write a file at a path given by the user. Raises InvalidInput if it can't be written."""
    try:
        atomic_write(path, text)
    except OSError as error:
        raise InvalidInput(f"{path} can't be written: {error.strerror or error}") from None


def fsync_dir(folder: str | Path) -> None:
    """Make changes to a folder's entries survive a power failure; syncing a file does not sync its name."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_regular(path: str | Path, flags: int = os.O_RDONLY) -> int:
    """Open a regular file and return its descriptor. Raises OSError with a plain `strerror` for a pipe or device."""
    descriptor = os.open(
        path, flags | os.O_NONBLOCK | os.O_CLOEXEC, PRIVATE
    )  # don't block on a pipe that has no writer
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def read_regular(path: str | Path, max_bytes: int = MAX_BYTES, flags: int = 0) -> bytes:
    """Read a regular file. Raises OSError as `open_regular` does, and if the file is larger than `max_bytes`."""
    descriptor = open_regular(path, os.O_RDONLY | flags)
    try:
        return read_open(descriptor, path, max_bytes)
    finally:
        os.close(descriptor)


def read_open(descriptor: int, path: str | Path, max_bytes: int = MAX_BYTES) -> bytes:
    """Read the rest of an open file. Raises OSError if that is more than `max_bytes`."""
    content = bytearray()
    while chunk := os.read(descriptor, min(_CHUNK, max_bytes + 1 - len(content))):
        content += chunk
        if len(content) > max_bytes:
            raise OSError(errno.EFBIG, f"it is larger than {max_bytes / 1_000_000:g} MB", str(path))
    return bytes(content)


def read_text(path: Path) -> str:
    """Read a UTF-8 text file, with or without a byte order mark; line endings are normalised to line feeds.

    Raises OSError as `read_regular` does, and if the content is not UTF-8.
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


def seal(descriptor: int) -> None:
    """Ask whoever writes to this file to begin another one, by taking its write permission; they look with `is_sealed`.

    It keeps nobody from writing: who has the file open may go on, and so may root.
    """
    os.fchmod(descriptor, _SEALED)


def is_sealed(status: os.stat_result) -> bool:
    return not status.st_mode & stat.S_IWUSR


def make_private_folder(folder: Path) -> None:
    """Create the folder and its missing parents with mode 0700; existing folders keep their mode."""
    if not folder.parent.exists():
        make_private_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def private_folder(folder: Path) -> Path:
    """Create the folder if needed and set its mode to 0700, whatever it was before."""
    make_private_folder(folder)
    folder.chmod(0o700)
    return folder


def is_private(folder: Path) -> bool:
    """Whether other users have no access to the folder."""
    return not folder.stat().st_mode & 0o077


def private_file(path: Path) -> Path:
    """Create an empty file with mode 0600, or set that mode on an existing file."""
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, PRIVATE))
    path.chmod(PRIVATE)
    return path


def _open_alone(path: str) -> int:
    """Open a file that has no other name to write it, or create it, and return its descriptor."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.open(path, flags, PRIVATE)
    if os.fstat(file).st_nlink == 1:
        return file
    os.close(file)
    os.unlink(path)  # noqa: PTH108
    return os.open(path, flags | os.O_EXCL, PRIVATE)


def _write_file(path: str, content: bytes | str, mode: int, durable: bool, exclusive: bool) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.open(path, flags | (os.O_EXCL if exclusive else os.O_TRUNC), mode)
    try:
        _write_all(file, content.encode() if isinstance(content, str) else content)
        if durable:
            os.fsync(file)
    finally:
        os.close(file)


def _write_all(file: int, content: bytes) -> None:
    remaining = memoryview(content)
    while remaining:
        remaining = remaining[os.write(file, remaining) :]


def _remove(path: str) -> None:
    with suppress(OSError):  # don't mask the original error
        os.unlink(path)  # noqa: PTH108


@cache
def _renameat2() -> Callable[[int, bytes, int, bytes, int], int]:
    """Return the function of the C library, or one that fails where there is none."""
    import ctypes

    return getattr(ctypes.CDLL(None), "renameat2", lambda *_: -1)
