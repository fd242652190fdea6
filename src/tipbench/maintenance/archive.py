"""The file of a backup: a compressed tar that holds files only, and at its end the SHA-256 of each.

BACKUP.json     what it is: the format's version, tipbench's version, the home and the time
home/…          the files
SHA256SUMS      the digest of each file before it, as `sha256sum --check` takes them

Nothing but tar, gzip and sha256sum is needed to get at a file by hand. Reading trusts nothing: not the names, not the
sizes, not the kinds of entries.
"""

import errno
import gzip
import json
import os
import shutil
import stat
import tarfile
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple

from tipbench.core.errors import InvalidInput
from tipbench.core.files import PRIVATE, make_private_folder
from tipbench.core.untrusted import shown

FORMAT = 1
_HEAD, _SUMS, _HOME = "BACKUP.json", "SHA256SUMS", "home/"
_LEVEL = 1  # of compression; docs/decisions/0031 has what others take
_CHUNK = 1 << 20
_IN_MEMORY = 8 << 20  # a larger file is copied in chunks, and must not become shorter meanwhile
_MAX_HEAD, _MAX_NAME = 100_000, 8_192
_BLOCK = 512  # of a tar


@dataclass(frozen=True)
class Head:
    """What a backup says about itself."""

    format: int
    tipbench: str
    home: str  # where it was
    began: str


class ArchiveWriter:
    """Writes a backup into an open file, as a context manager: without its end, nobody takes the file for a backup."""

    def __init__(self, file: BinaryIO, head: Head) -> None:
        self.files = 0
        self.bytes = 0
        self._sums = tempfile.TemporaryFile()  # noqa: SIM115
        self._tar = tarfile.open(fileobj=file, mode="w:gz", compresslevel=_LEVEL, format=tarfile.GNU_FORMAT)  # noqa: SIM115
        self._add(_HEAD, json.dumps(asdict(head), indent=2).encode() + b"\n", PRIVATE)

    def __enter__(self) -> "ArchiveWriter":
        return self

    def __exit__(self, kind: type | None, _error: BaseException | None, _where: TracebackType | None) -> None:
        with self._sums:
            if kind is None:
                size = self._sums.tell()
                self._sums.seek(0)
                self._tar.addfile(_entry(_SUMS, size, PRIVATE), self._sums)
                self._tar.close()

    def add(self, name: str, content: bytes, mode: int = PRIVATE) -> None:
        """Add a file of the home with this content."""
        self._add(_HOME + name, content, mode)
        self.files += 1
        self.bytes += len(content)

    def add_open(self, name: str, file: BinaryIO) -> None:
        """Add a file of the home from an open file, as much as there is now.

        Raises OSError if it becomes shorter while it is copied.
        """
        status = os.fstat(file.fileno())
        if status.st_size <= _IN_MEMORY:
            self.add(name, file.read(_IN_MEMORY), status.st_mode)
            return
        source = _DigestingFile(file)
        try:
            self._tar.addfile(_entry(_HOME + name, status.st_size, status.st_mode), source)
        except OSError as error:
            if source.size < status.st_size and not error.errno:
                raise OSError(errno.EAGAIN, "it became shorter while it was copied; try again", name) from error
            raise
        self._note(_HOME + name, source.digest)
        self.files += 1
        self.bytes += status.st_size

    def _add(self, name: str, content: bytes, mode: int) -> None:
        self._tar.addfile(_entry(name, len(content), mode), BytesIO(content))
        self._note(name, sha256(content).hexdigest())

    def _note(self, name: str, digest: str) -> None:
        self._sums.write(_sum_line(name, digest))
        self._tar.getmembers().clear()  # it remembers all of them, for readers


def _entry(name: str, size: int, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size = size
    entry.mode = stat.S_IMODE(mode) & 0o700
    return entry


def _sum_line(name: str, digest: str) -> bytes:
    return f"{digest}  {name}\n".encode("utf-8", "surrogateescape")


class _DigestingFile:
    """Reads from a file, and computes the digest of what was read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = sha256()
        self.size = 0

    def read(self, count: int = -1, /) -> bytes:
        content = self._file.read(count)
        self._digest.update(content)
        self.size += len(content)
        return content

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()


# Reading


class Damaged(Exception):
    """Says what is wrong with a backup."""


class _Entry(NamedTuple):
    name: str
    size: int
    mode: int


class ArchiveReader:
    """Reads a backup that may be damaged, cut off or made to do harm.

    It reads the tar by itself, because a tar may hold much that a backup does not: links, devices, sparse files and
    headers of any size.
    """

    def __init__(self, file: BinaryIO) -> None:
        """Read the head. Raises Damaged if this is no backup, InvalidInput if it is one of a newer tipbench."""
        self._stream = gzip.GzipFile(fileobj=file)
        self._sums = sha256()
        self._sums_size = 0
        entry = self._next()
        if entry.name != _HEAD:
            raise Damaged("it does not begin as one")
        self.head = _parse_head(self._read_content(entry, _MAX_HEAD))
        if self.head.format > FORMAT:
            self._check_rest()
            raise InvalidInput(f"it was made by tipbench {shown(self.head.tipbench)}; use that version, or a newer one")

    def extract(self, folder: Path, watch: Callable[[int], None]) -> int:
        """Write all files below this empty folder, and return how many; `watch` gets the size of each.

        Raises Damaged unless every file is as it was written; what is in the folder is then of no use. Raises
        InvalidInput if they need more space than there is.
        """
        files = 0
        free = shutil.disk_usage(folder).free
        while (entry := self._next()).name != _SUMS:
            free -= entry.size + _BLOCK
            if free < 0:
                self._check_rest()
                raise InvalidInput(f"what is in it needs more space than is free in {folder.parent}")
            self._extract(entry, folder)
            files += 1
            watch(entry.size)
        expected, size = self._sums.hexdigest(), self._sums_size
        found = _Discarding()
        if entry.size == size:  # else it could be of any size
            self._copy(entry, found)
        # Nothing but zeros until the end, where gzip's own checksum is
        if found.digest != expected or self._read_some(_CHUNK).strip(b"\0") or self._read_some(1):
            raise Damaged("its content is not what was written")
        return files

    def _extract(self, entry: _Entry, folder: Path) -> None:
        name = entry.name.removeprefix(_HOME)
        parts = name.split("/")
        if name == entry.name or {"", ".", ".."}.intersection(parts) or "\0" in name:
            raise Damaged(f"{shown(entry.name)} in it is no file of a home")
        path = folder.joinpath(*parts)
        try:
            make_private_folder(path.parent)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            file = os.fdopen(os.open(path, flags, PRIVATE), "wb")
        except OSError as error:
            if error.errno in (errno.EEXIST, errno.ENOTDIR, errno.ENAMETOOLONG):
                raise Damaged(f"{shown(name)} in it is not a name of its own") from error
            raise
        with file:
            self._copy(entry, file)
            os.fchmod(file.fileno(), entry.mode & 0o700)

    def _next(self) -> _Entry:
        block, name = self._read(_BLOCK), b""
        if block[156:157] == tarfile.GNUTYPE_LONGNAME:
            size = _parse_number(block[124:136])
            if size > _MAX_NAME:
                raise Damaged("a name in it is too long")
            name = self._read(size + -size % _BLOCK)
            block = self._read(_BLOCK)
        if block[156:157] != tarfile.REGTYPE:
            raise Damaged("its end is missing" if not block.strip(b"\0") else "it holds what is no file")
        name = (name or block[:100]).partition(b"\0")[0]
        return _Entry(
            name.decode("utf-8", "surrogateescape"), _parse_number(block[124:136]), _parse_number(block[100:108])
        )

    def _read_content(self, entry: _Entry, limit: int) -> bytes:
        if entry.size > limit:
            raise Damaged(f"{entry.name} in it is too large")
        content = BytesIO()
        self._copy(entry, content)
        return content.getvalue()

    def _copy(self, entry: _Entry, target: "BinaryIO | _Discarding") -> None:
        digest = sha256()
        left = entry.size
        while left:
            chunk = self._read(min(left, _CHUNK))
            digest.update(chunk)
            target.write(chunk)
            left -= len(chunk)
        self._read(-entry.size % _BLOCK)
        line = _sum_line(entry.name, digest.hexdigest())
        self._sums.update(line)
        self._sums_size += len(line)

    def _check_rest(self) -> None:
        """Raise Damaged if gzip's checksum, at the end, says that what was read so far is not what was written."""
        while self._read_some(_CHUNK):
            pass

    def _read(self, count: int) -> bytes:
        content = self._read_some(count)
        if len(content) < count:
            raise Damaged("its end is missing")
        return content

    def _read_some(self, count: int) -> bytes:
        try:
            return self._stream.read(count)
        except EOFError:
            raise Damaged("its end is missing") from None
        except (zlib.error, gzip.BadGzipFile) as error:
            raise Damaged(str(error)) from error


class _Discarding:
    """Takes content of any size, and has its digest."""

    def __init__(self) -> None:
        self._digest = sha256()

    def write(self, content: bytes) -> None:
        self._digest.update(content)

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()


def _parse_number(field: bytes) -> int:
    """Parse a number of a tar's header: octal, or binary if it is large."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b" \0")
    if not digits.isdigit() or b"8" in digits or b"9" in digits:
        raise Damaged("a size in it is no number")
    return int(digits, 8)


def _parse_head(content: bytes) -> Head:
    try:
        data = json.loads(content)
        head = Head(data["format"], str(data["tipbench"]), str(data["home"]), str(data["began"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Damaged("it does not begin as one") from None
    if type(head.format) is not int:
        raise Damaged("it does not begin as one")
    return head
