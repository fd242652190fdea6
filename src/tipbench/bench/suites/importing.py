"""Brings scenarios from a CSV or JSON Lines file into a suite: all of them, or none if one can't be used."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from tipbench.bench.suites.load import load_suite_with
from tipbench.core.errors import InvalidInput, SuiteError
from tipbench.core.files import atomic_write, read_text
from tipbench.core.identity import data_digest
from tipbench.core.located_yaml import dump_yaml, load_located
from tipbench.core.untrusted import printable, shown

_FILE = "scenarios.yaml"
_CHECKS = "checks"
_PARTS = ("factors", "details")  # that a line of JSON may spell out, as scenarios.yaml does
_NOT_IN_NAMES = re.compile(r"[^a-z0-9_]+")
_MAX_PROBLEMS = 50


@dataclass(frozen=True)
class Imported:
    """What was taken from a file."""

    taken: tuple[str, ...]  # ids of new scenarios
    known: tuple[str, ...]  # ids that the suite has already, with the same content
    factors: tuple[str, ...]  # columns that became factors
    details: tuple[str, ...]  # columns that became details, by their names in the suite
    checks: int  # of the new scenarios, how many declare a check
    scenarios: int  # that the suite has now


class _Row(NamedTuple):
    line: int
    values: Mapping[str, Any]


def import_scenarios(folder: Path, path: Path) -> Imported:
    """Add the scenarios of a file to the suite in a folder; return what was taken.

    A column named as a factor of the suite holds its level, `id` the scenario's name (else it is named by its content),
    `checks` its checks as JSON; every other column becomes a detail, and empty values are left out. Raises
    InvalidInput, or SuiteError with every problem; the suite is then unchanged.
    """
    rows = _rows(path)
    text, known = _stored(folder)
    factors = _factors(folder)
    entries, problems = _entries(path.name, rows, factors)
    by_id = {entry.get("id"): entry for entry in known}
    problems += [
        f"{path.name}:{row.line}: the suite has another scenario '{entry['id']}'; rename one of the two"
        for row, entry in zip(rows, entries, strict=True)
        if by_id.get(entry["id"], entry) != entry
    ]
    if problems:
        raise SuiteError(f"{path} can't be imported, and nothing was changed:", problems[:_MAX_PROBLEMS])
    new = [entry for entry in entries if entry["id"] not in by_id]
    if new:
        try:
            _write(folder, text, known, new)
        except SuiteError as error:
            headline = f"{path} can't be imported, and nothing was changed; with its scenarios at the end of {_FILE}:"
            raise SuiteError(headline, error.problems[:_MAX_PROBLEMS]) from None
    return Imported(
        taken=tuple(entry["id"] for entry in new),
        known=tuple(entry["id"] for entry in entries if entry["id"] in by_id),
        factors=tuple(dict.fromkeys(name for entry in entries for name in entry["factors"])),
        details=tuple(dict.fromkeys(name for entry in entries for name in entry.get("details", {}))),
        checks=sum(_CHECKS in entry for entry in new),
        scenarios=len(known) + len(new),
    )


# Reading the file


def _rows(path: Path) -> list[_Row]:
    readers: dict[str, Callable[[str], Iterator[_Row]]] = {".csv": _csv_rows, ".jsonl": _json_rows}
    if path.suffix.lower() not in readers:
        raise InvalidInput(f"scenarios come from a .csv or a .jsonl file, and {path} is neither")
    try:
        rows = list(readers[path.suffix.lower()](read_text(path)))
    except OSError as error:
        raise InvalidInput(f"{path} can't be read: {error.strerror}") from None
    except (ValueError, csv.Error, RecursionError) as error:
        raise InvalidInput(f"{path} can't be imported: {printable(str(error), 300)}; nothing was changed") from None
    if not rows:
        raise InvalidInput(f"{path} holds no scenario; nothing was changed")
    return rows


def _csv_rows(text: str) -> Iterator[_Row]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    names = [name.strip() for name in reader.fieldnames or ()]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ValueError(f"line 1: the column {shown(doubled[0])} is there twice")
    reader.fieldnames = names
    before = reader.line_num
    for row in reader:
        if None in row or None in row.values():
            raise ValueError(f"line {before + 1}: it has another number of values than there are columns")
        given = {name: value for name, value in row.items() if value.strip()}
        checks = given.get(_CHECKS)
        if checks is not None:
            given[_CHECKS] = _json(checks, f"line {before + 1}, column {_CHECKS}")
        yield _Row(before + 1, given)
        before = reader.line_num


def _json_rows(text: str) -> Iterator[_Row]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            value = _json(line, f"line {number}")
            if not isinstance(value, dict):
                raise ValueError(f"line {number}: {shown(value)} is no object, as {{...}} is")
            parts = {name: value.pop(name) for name in _PARTS if isinstance(value.get(name), dict)}
            flat = {name: one for part in parts.values() for name, one in part.items()}
            yield _Row(number, {**flat, **{name: one for name, one in value.items() if one is not None}})


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except ValueError as error:
        raise ValueError(f"{where}: not valid JSON: {error}") from None


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


# Making scenarios of it


def _entries(name: str, rows: list[_Row], factors: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the entries of scenarios.yaml, one for each row, and what is wrong with the rows, by line."""
    entries, problems = [], []
    lines: dict[str, int] = {}
    for row in rows:
        given = dict(row.values)
        identity = str(given.pop("id", None) or f"case-{data_digest(given)[:8]}").strip()
        if identity in lines:
            problems.append(f"{name}:{row.line}: the id {shown(identity)} is already used (line {lines[identity]})")
        lines.setdefault(identity, row.line)
        entry: dict[str, Any] = {"id": identity, "factors": {}, "details": {}}
        checks = given.pop(_CHECKS, None)
        for column, value in given.items():
            key = _variable(column)
            part = "factors" if column in factors else "details"
            if key in entry[part]:
                problems.append(f"{name}:{row.line}: two columns would both be called '{key}'; rename {shown(column)}")
            entry[part][column if part == "factors" else key] = str(value) if part == "factors" else value
        if not entry["details"]:
            del entry["details"]
        if checks:
            entry[_CHECKS] = checks
        entries.append(entry)
    return entries, problems


def _variable(column: str) -> str:
    """Return a column's name as templates can use it: 'Task text' is task_text."""
    return _NOT_IN_NAMES.sub("_", column.strip().casefold()).strip("_")


# The suite's file


def _stored(folder: Path) -> tuple[str, list[dict[str, Any]]]:
    """Return the suite's scenarios.yaml as text and as data; none where there is no such file yet."""
    path = folder / _FILE
    if not (folder / "suite.yaml").is_file():
        raise InvalidInput(f"there is no suite in {folder}; 'tipbench suite new NAME' makes one")
    try:
        text = read_text(path) if path.exists() else ""
    except OSError as error:
        raise InvalidInput(f"{path} can't be read: {error.strerror}") from None
    located = load_located(text)
    if located.problems or not isinstance(located.data or [], list):
        raise InvalidInput(f"{path} can't be used; 'tipbench suite check {folder}' says why")
    return text, [entry for entry in located.data or [] if isinstance(entry, dict)]


def _factors(folder: Path) -> Mapping[str, Any]:
    data = load_located(read_text(folder / "suite.yaml")).data
    found = data.get("factors") if isinstance(data, dict) else None
    return found if isinstance(found, dict) else {}


def _write(folder: Path, text: str, known: list[dict[str, Any]], new: list[dict[str, Any]]) -> None:
    """Append the new entries to the file, whose comments stay; refuse if the suite could not be loaded then."""
    added = dump_yaml(new, allow_unicode=True, sort_keys=False)
    changed = f"{text.rstrip()}\n{added}" if known else added
    if load_located(changed).data != [*known, *new]:
        raise InvalidInput(
            f"nothing was changed: the new scenarios can't be appended to {folder / _FILE}; write it as a list whose "
            "entries begin with '- id: …', and use text that a file can hold"
        )
    load_suite_with(folder, changed)
    atomic_write(folder / _FILE, changed, durable=True)
