"""Immutable records: one file each, named by its content.

The id is a prefix of the digest of everything else, so a record that was edited no longer matches its name.
"""

import errno
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json, to_json

from tipbench.core.errors import InvalidInput, NotFound, StateDamaged, StateRefused
from tipbench.core.files import atomic_write, private_folder, read_regular
from tipbench.core.identity import data_digest
from tipbench.core.untrusted import shown

_DIGITS = 16
_ID = re.compile(r"[0-9a-f]{16}")
_FILES = "[0-9a-f]" * _DIGITS + ".json"


class RecordPart(BaseModel):
    """A part of a record. Validation is strict: wrong types are not coerced."""

    model_config = ConfigDict(frozen=True, strict=True)


class Record(RecordPart):
    """The fields that all records have."""

    schema_version: Literal[1] = Field(alias="schema")
    id: str
    made_ms: int


_Record = TypeVar("_Record", bound=Record)
_Model = TypeVar("_Model", bound=Record)
_Row = TypeVar("_Row")
_FileStamp = tuple[int, int]


class RecordFolder(Generic[_Record]):
    """The records of one kind. `remedy` is the advice for one that can't be read, used in error messages."""

    def __init__(self, folder: Path, model: type[_Record], kind: str, remedy: str) -> None:
        self.path = folder
        self._model = model
        self._kind = kind
        self._remedy = remedy

    def read(self, name: str) -> _Record:
        """Read a record; raise NotFound, StateDamaged if it was edited, or StateRefused if it is of another version."""
        return self.read_as(self._model, name)

    def read_as(self, model: type[_Model], name: str) -> _Model:
        """Read a record into another model, with more or fewer of its fields."""
        return self._parse(model, self.data(name))

    def data(self, name: str) -> dict[str, Any]:
        """Return the record as it was stored."""
        try:
            return read_record(self.path, name)
        except NotFound:
            raise NotFound(f"there is no {self._kind} {name}") from None

    def newest_first(self) -> list[_Record]:
        """Return all records; raise StateDamaged or StateRefused for the first that can't be read."""
        found = [self._parse(self._model, data) for data in read_records(self.path)]
        return sorted(found, key=lambda record: (record.made_ms, record.id), reverse=True)

    def _parse(self, model: type[_Model], data: dict[str, Any]) -> _Model:
        try:
            return model.model_validate(data)
        except ValidationError as error:
            raise StateRefused(
                f"the {self._kind} {data['id']} was stored in a format that this version of tipbench does not know; "
                "remove it from "
                f"recommender/{self.path.name} in TIPBENCH_HOME, and {self._remedy}"
            ) from error


class RecordIndex(Generic[_Row]):
    """Caches one row per record of a folder, so that unchanged files are read only once. Thread-safe."""

    def __init__(self, folder: Path, load_row: Callable[[str], _Row]) -> None:
        self._folder = folder
        self._load_row = load_row
        self._lock = threading.Lock()
        self._rows: dict[str, tuple[_FileStamp, _Row]] = {}

    def read(self) -> list[_Row]:
        """Return the rows of all records, in no particular order."""
        with self._lock:
            found: dict[str, tuple[_FileStamp, _Row]] = {}
            for path in self._folder.glob(_FILES):
                with suppress(FileNotFoundError, NotFound):  # it has just been removed
                    found[path.stem] = self._read_row(path)
            self._rows = found
            return [row for _, row in found.values()]

    def _read_row(self, path: Path) -> tuple[_FileStamp, _Row]:
        stat = path.stat()
        stamp = (stat.st_mtime_ns, stat.st_size)
        cached = self._rows.get(path.stem)
        return cached if cached and cached[0] == stamp else (stamp, self._load_row(path.stem))


def write_record(folder: Path, content: Mapping[str, Any]) -> str:
    """Write a new record; return its id."""
    name, text = encode_record(content)
    atomic_write(private_folder(folder) / f"{name}.json", text, durable=True)
    return name


def encode_record(content: Mapping[str, Any]) -> tuple[str, bytes]:
    """Return the id of a record with this content, and the record as it is stored."""
    name = data_digest(content)[:_DIGITS]
    return name, to_json({"id": name, **content}, indent=2) + b"\n"


def read_record(folder: Path, name: str) -> dict[str, Any]:
    """Read a record and verify its id.

    Raises InvalidInput for a malformed id, NotFound if there is no such record, StateDamaged if it was edited.
    """
    check_id(name)
    path = folder / f"{name}.json"
    try:
        text = read_regular(path)
    except FileNotFoundError:
        raise NotFound(f"there is no record {name} in {folder}") from None
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EFBIG):
            raise
        raise _edited_error(str(path)) from error
    return decode_record(text, name, str(path))


def check_id(name: str) -> None:
    if not _ID.fullmatch(name):
        raise InvalidInput(f"{shown(name)} is not a record id; an id has {_DIGITS} digits and letters from a to f")


def decode_record(text: bytes | str, name: str, address: str) -> dict[str, Any]:
    """Parse a stored record; raise StateDamaged if its content is not the one that this id stands for."""
    try:
        record = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise _edited_error(address) from error
    if not isinstance(record, dict) or record.pop("id", None) != name or data_digest(record)[:_DIGITS] != name:
        raise _edited_error(address)
    return {"id": name, **record}


def read_records(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield all records of a folder, in no particular order."""
    for name in record_ids(folder):
        yield read_record(folder, name)


def record_ids(folder: Path) -> list[str]:
    return [path.stem for path in folder.glob(_FILES)]


def _edited_error(address: str) -> StateDamaged:
    return StateDamaged(f"{address} was changed after it was written, so it can't be trusted; remove it and try again")
