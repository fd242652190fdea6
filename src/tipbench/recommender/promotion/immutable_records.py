"""Records that are written once and never changed: a file each, named by what is in it.

The id is the beginning of a digest of all the rest, so a record that was edited afterwards no longer fits its name.
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
    """A part of a record. What is wrong with it is never mended by guessing: a string is no number."""

    model_config = ConfigDict(frozen=True, strict=True)


class Record(RecordPart):
    """What all records have."""

    schema_version: Literal[1] = Field(alias="schema")
    id: str
    made_ms: int


_Record = TypeVar("_Record", bound=Record)
_Whole = TypeVar("_Whole", bound=Record)
_Line = TypeVar("_Line")
_Mark = tuple[int, int]


class RecordFolder(Generic[_Record]):
    """The records of one kind. `again` is what to do about one that can't be read."""

    def __init__(self, folder: Path, model: type[_Record], kind: str, again: str) -> None:
        self.path = folder
        self._model = model
        self._kind = kind
        self._again = again

    def read(self, name: str) -> _Record:
        """Raises NotFound, StateDamaged for one that was edited, StateRefused for one of another version."""
        return self.read_as(self._model, name)

    def read_as(self, model: type[_Whole], name: str) -> _Whole:
        """The same, with more of the record or less."""
        return self._parsed(model, self.data(name))

    def data(self, name: str) -> dict[str, Any]:
        """The record as it was stored."""
        try:
            return read_record(self.path, name)
        except NotFound:
            raise NotFound(f"there is no {self._kind} {name}") from None

    def newest_first(self) -> list[_Record]:
        """All of them. Raises StateDamaged and StateRefused for the first that can't be read."""
        found = [self._parsed(self._model, data) for data in read_records(self.path)]
        return sorted(found, key=lambda record: (record.made_ms, record.id), reverse=True)

    def _parsed(self, model: type[_Whole], data: dict[str, Any]) -> _Whole:
        try:
            return model.model_validate(data)
        except ValidationError as error:
            raise StateRefused(
                f"the {self._kind} {data['id']} was stored in a form that this tipbench does not know; remove it from "
                f"recommender/{self.path.name} in TIPBENCH_HOME, and {self._again}"
            ) from error


class RecordIndex(Generic[_Line]):
    """A line for each record of a folder, in no order; a file is read once. Safe to be asked by many threads."""

    def __init__(self, folder: Path, line_of: Callable[[str], _Line]) -> None:
        self._folder = folder
        self._line_of = line_of
        self._lock = threading.Lock()
        self._lines: dict[str, tuple[_Mark, _Line]] = {}

    def read(self) -> list[_Line]:
        with self._lock:
            found: dict[str, tuple[_Mark, _Line]] = {}
            for path in self._folder.glob(_FILES):
                with suppress(FileNotFoundError, NotFound):  # somebody has just removed it
                    found[path.stem] = self._known(path)
            self._lines = found
            return [line for _, line in found.values()]

    def _known(self, path: Path) -> tuple[_Mark, _Line]:
        stat = path.stat()
        mark = (stat.st_mtime_ns, stat.st_size)
        known = self._lines.get(path.stem)
        return known if known and known[0] == mark else (mark, self._line_of(path.stem))


def write_record(folder: Path, content: Mapping[str, Any]) -> str:
    """Write a new record; returns its id."""
    name = data_digest(content)[:_DIGITS]
    path = private_folder(folder) / f"{name}.json"
    atomic_write(path, to_json({"id": name, **content}, indent=2) + b"\n", durable=True)
    return name


def read_record(folder: Path, name: str) -> dict[str, Any]:
    if not _ID.fullmatch(name):
        raise InvalidInput(f"{shown(name)} is no id of a record; an id has {_DIGITS} digits and letters from a to f")
    path = folder / f"{name}.json"
    try:
        record = from_json(read_regular(path), allow_inf_nan=False)
    except FileNotFoundError:
        raise NotFound(f"there is no record {name} in {folder}") from None
    except (ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in (errno.EINVAL, errno.EFBIG):
            raise
        raise _edited(path) from error
    if not isinstance(record, dict) or record.pop("id", None) != name or data_digest(record)[:_DIGITS] != name:
        raise _edited(path)
    return {"id": name, **record}


def read_records(folder: Path) -> Iterator[dict[str, Any]]:
    """In no order."""
    for path in folder.glob("*.json"):
        if _ID.fullmatch(path.stem):
            yield read_record(folder, path.stem)


def _edited(path: Path) -> StateDamaged:
    return StateDamaged(f"{path} was changed after it was written, so it proves nothing; remove it, and try again")
