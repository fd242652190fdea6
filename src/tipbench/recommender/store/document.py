"""The document of one user and policy: the state and the recent events, in one file.

Both change together, so that a reward is either both learned and recorded, or neither. The document stays small: the
number of events that wait for a reward is limited, and so is the number of settled ones that are remembered.
"""

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from tipbench.core.errors import StateDamaged
from tipbench.core.untrusted import shown
from tipbench.recommender.store.interface import Event, Key, UserState

SCHEMA = 1
MOST_WAITING = 200
MOST_SETTLED = 200
_COLUMNS = tuple(field.name for field in fields(Event))
_REWARD, _LATE, _FEATURES = (_COLUMNS.index(name) for name in ("reward", "late", "features"))
_EVENT = TypeAdapter(Event)
_Row = list[Any]


class Document:
    """Implements `Transaction`. Events are stored as rows and parsed on demand, because most are never read."""

    def __init__(self, key: Key, user_state: UserState | None, rows: dict[str, _Row]) -> None:
        self.key = key
        self.user_state = user_state
        self._rows = rows
        self.changed = False

    @classmethod
    def new(cls, key: Key) -> "Document":
        return cls(key, None, {})

    @classmethod
    def from_events(cls, key: Key, user_state: UserState | None, events: Iterable[Event]) -> "Document":
        """Create a document with all of these events; any beyond the limits are dropped when the next one is put."""
        return cls(key, user_state, {event.id: _row(event) for event in events})

    @classmethod
    def read(cls, content: bytes, path: Path, key: Key | None) -> "Document":
        """Parse a file's content; raise StateDamaged if it is malformed, or about another user or policy."""
        try:
            data = from_json(content, allow_inf_nan=False)
            if data["schema"] != SCHEMA:
                raise ValueError(f"its schema is {shown(data['schema'])}, and {SCHEMA} is known here")
            found = Key(data["user_id"], data["policy"])
            if key is not None and found != key:
                raise ValueError(f"it is about {shown(found.user_id)} with {shown(found.policy)}")
            if data["event_columns"] != list(_COLUMNS):
                raise ValueError("its events have other columns")
            if any(type(row) is not list or len(row) != len(_COLUMNS) for row in data["events"]):
                raise ValueError("an event has other columns")
            user_state = _user_state(data["kept"]) if data["kept"] else None
            return cls(found, user_state, {row[0]: row for row in data["events"]})
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise StateDamaged(
                f"{path} can't be used as a state: {error}; restore a backup, or reset the user"
            ) from error

    def as_bytes(self) -> bytes:
        data = {
            "schema": SCHEMA,
            "user_id": self.key.user_id,
            "policy": self.key.policy,
            "kept": vars(self.user_state) if self.user_state else None,
            "event_columns": _COLUMNS,
            "events": list(self._rows.values()),
        }
        return to_json(data) + b"\n"

    def event(self, event_id: str) -> Event | None:
        row = self._rows.get(event_id)
        return _event(row) if row else None

    def events(self) -> list[Event]:
        return [_event(row) for row in self._rows.values()]

    def put(self, event: Event) -> None:
        self._rows.pop(event.id, None)  # moves to the end, so that the one rewarded last is forgotten last
        self._rows[event.id] = _row(event)
        self._forget()
        self.changed = True

    def put_state(self, user_state: UserState) -> None:
        self.user_state = user_state
        self.changed = True

    def _forget(self) -> None:
        """Enforce the limits: mark the oldest waiting events as late, and delete the oldest settled ones."""
        waiting = [row for row in self._rows.values() if row[_REWARD] is None and not row[_LATE]]
        for row in waiting[: max(0, len(waiting) - MOST_WAITING)]:
            row[_LATE], row[_FEATURES] = True, None
        settled = [id for id, row in self._rows.items() if row[_REWARD] is not None or row[_LATE]]
        for id in settled[: max(0, len(settled) - MOST_SETTLED)]:
            del self._rows[id]


def _user_state(data: dict[str, Any]) -> UserState:
    user_state = UserState(**data)
    counts = (user_state.duplicates, user_state.late, user_state.updated_ms or 0)
    fits = isinstance(user_state.feature_version, str) and isinstance(user_state.state, dict)
    if not fits or any(type(count) is not int for count in counts):
        raise ValueError("the data stored beside the events is of another kind")
    return user_state


def _row(event: Event) -> _Row:
    return [getattr(event, name) for name in _COLUMNS]


def _event(row: _Row) -> Event:
    """Parse and validate a row; raise StateDamaged if it is malformed."""
    try:
        return _EVENT.validate_python(dict(zip(_COLUMNS, row, strict=True)))
    except ValueError as error:
        raise StateDamaged(f"the event {shown(row[0])} was not written by tipbench; reset the user") from error
