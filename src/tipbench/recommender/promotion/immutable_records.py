"""Records that are written once and never changed: a file each, named by what is in it.

The id is the beginning of a digest of all the rest, so a record that was edited afterwards no longer fits its name.
"""

import errno
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from tipbench.core.errors import InvalidInput, NotFound, StateDamaged
from tipbench.core.files import atomic_write, private_folder, read_regular
from tipbench.core.identity import data_digest
from tipbench.core.untrusted import shown

_DIGITS = 16
_ID = re.compile(r"[0-9a-f]{16}")


def write_record(folder: Path, content: Mapping[str, Any]) -> str:
    """Its id."""
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
