"""The document of one user and policy: the state and the recent events, in one file.

Both change together, so that a reward is either both learned and recorded, or neither. The document stays small: the
number of events that wait for a reward is limited, and so is the number of settled ones that are remembered. Events are
held as the JSON in which they are stored, because most are never read again: storing a document joins them.
"""

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from tipbench.core.errors import StateDamaged
from tipbench.core.untrusted import shown
from tipbench.recommender.store.interface import Event, Key, UserState

SCHEMA = 1
MOST_WAITING = 200
MOST_SETTLED = 200
_COLUMNS = tuple(field.name for field in fields(Event))
_KNOWN_COLUMNS = (list(_COLUMNS), list(_COLUMNS[:-1]))  # files of 0.1 have no category
_REWARD, _LATE, _FEATURES, _CATEGORY = (_COLUMNS.index(name) for name in ("reward", "late", "features", "category"))
_EVENT = TypeAdapter(Event)
_BEFORE_EVENTS = b',"event_columns":' + to_json(_COLUMNS) + b',"events":['
_BEFORE_CHECKSUM = b',"crc":'  # of all that comes before; in no string of JSON, which would escape the quotes


class _Row(NamedTuple):
    content: bytes  # the event's values as a JSON list
    waits: bool  # for a reward


class Document:
    """Implements `Transaction`. `revision` grows with every version that is stored; 0 before there were revisions."""

    def __init__(self, key: Key, user_state: UserState | None, rows: dict[str, _Row], revision: int = 0) -> None:
        self.key = key
        self.revision = revision
        self.user_state = user_state
        self._rows = rows
        self._waiting = sum(row.waits for row in rows.values())
        self._put: list[bytes] = []
        self._kept: bytes | None = None  # the state as JSON
        self.changed = False
        self.has_checksum = True  # where it was read from; files of 0.2 have none

    @classmethod
    def new(cls, key: Key) -> "Document":
        return cls(key, None, {})

    @classmethod
    def from_events(cls, key: Key, user_state: UserState | None, events: Iterable[Event]) -> "Document":
        """Create a document with all of these events; any beyond the limits are dropped when the next one is put."""
        return cls(key, user_state, {event.id: _row(_values(event)) for event in events})

    @classmethod
    def read(cls, content: bytes, path: Path | str, key: Key | None) -> "Document":
        """Parse a file's content; raise StateDamaged if it is malformed, or about another user or policy."""
        try:
            data = from_json(content, allow_inf_nan=False)
        except ValueError as error:
            raise _damaged(path, error) from error
        document = cls.from_data(data, path, key)
        document.has_checksum = "crc" in data
        if document.has_checksum and not is_whole(content):
            raise _damaged(path, ValueError("its checksum does not match, so it is not as it was written"))
        return document

    @classmethod
    def from_data(cls, data: Any, path: Path | str, key: Key | None) -> "Document":
        """Create a document from a file's JSON; raise StateDamaged as `read` does."""
        try:
            if data["schema"] != SCHEMA:
                raise ValueError(f"its schema is {shown(data['schema'])}, and {SCHEMA} is known here")
            found = Key(data["user_id"], data["policy"])
            if key is not None and found != key:
                raise _about(found)
            columns = data["event_columns"]
            if columns not in _KNOWN_COLUMNS:
                raise ValueError("its events have other columns")
            if any(type(row) is not list or len(row) != len(columns) for row in data["events"]):
                raise ValueError("an event has other columns")
            user_state = _user_state(data["kept"]) if data["kept"] else None
            rows = {row[0]: _row(_with_all_columns(row)) for row in data["events"]}
            return cls(found, user_state, rows, _revision(data.get("revision", 0)))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise _damaged(path, error) from error

    def copy(self) -> "Document":
        """Return a copy that can be changed without changing this one."""
        copy = Document.__new__(Document)
        copy.key, copy.revision, copy.changed = self.key, self.revision, False
        copy.user_state, copy._kept, copy.has_checksum = self.user_state, self._kept, self.has_checksum
        copy._rows, copy._waiting, copy._put = {**self._rows}, self._waiting, []
        return copy

    def as_bytes(self) -> bytes:
        rows = b",".join([row.content for row in self._rows.values()])
        before = b"".join((b'{"schema":%d,' % SCHEMA, self._head(), _BEFORE_EVENTS, rows, b"]"))
        return b"".join((before, _BEFORE_CHECKSUM, _checksum(before)))

    def delta(self, base: int) -> bytes:
        """Return what was changed since the document had the revision `base`, to be applied by `apply`."""
        return b"".join((b'{"base":%d,' % base, self._head(), b',"events":[', b",".join(self._put), b"]}"))

    def apply(self, delta: dict[str, Any]) -> None:
        """Change the document as it was changed when this delta was written; raise ValueError if it is malformed."""
        self.user_state, self._kept = _user_state(delta["kept"]) if delta["kept"] else None, None
        for row in delta["events"]:
            self._put_row(row[0], _row(_with_all_columns(row)))
        self.revision = _revision(delta["revision"])

    def event(self, event_id: str) -> Event | None:
        row = self._rows.get(event_id)
        return _event(row) if row else None

    def events(self) -> list[Event]:
        return [_event(row) for row in self._rows.values()]

    @property
    def waiting(self) -> int:
        """The number of events that wait for a reward."""
        return self._waiting

    def put(self, event: Event) -> None:
        row = _row(_values(event))
        self._put_row(event.id, row)
        self._put.append(row.content)
        self.changed = True

    def put_state(self, user_state: UserState) -> None:
        self.user_state, self._kept = user_state, None
        self.changed = True

    def _head(self) -> bytes:
        if self._kept is None:
            self._kept = to_json(vars(self.user_state)) if self.user_state else b"null"
        user_id, policy = to_json(self.key.user_id), to_json(self.key.policy)
        return b'"user_id":%b,"policy":%b,"revision":%d,"kept":%b' % (user_id, policy, self.revision, self._kept)

    def _put_row(self, event_id: str, row: _Row) -> None:
        before = self._rows.pop(event_id, None)  # moves to the end, so that the one rewarded last is forgotten last
        self._rows[event_id] = row
        self._waiting += row.waits - (before.waits if before else False)
        self._forget()

    def _forget(self) -> None:
        """Enforce the limits: mark the oldest waiting events as late, and delete the oldest settled ones."""
        for event_id in self._oldest(self._waiting - MOST_WAITING, waiting=True):
            values = from_json(self._rows[event_id].content)
            values[_LATE], values[_FEATURES], values[_CATEGORY] = True, None, None
            self._rows[event_id] = _row(values)
            self._waiting -= 1
        for event_id in self._oldest(len(self._rows) - self._waiting - MOST_SETTLED, waiting=False):
            del self._rows[event_id]

    def _oldest(self, number: int, waiting: bool) -> list[str]:
        """Return the ids of the oldest events that wait for a reward, or of those that don't."""
        found: list[str] = []
        if number > 0:
            for event_id, row in self._rows.items():
                if row.waits == waiting:
                    found.append(event_id)
                    if len(found) == number:
                        break
        return found


def file_name(key: Key) -> str:
    return f"{key.user_id}_{key.policy.replace('/', '_')}.json"


def key_of(content: bytes) -> Key | None:
    """Return whom a file's content is about, and with which policy; None if it is no document."""
    try:
        data = from_json(content)
        user_id, policy = data["user_id"], data["policy"]
    except (ValueError, KeyError, TypeError):
        return None
    return Key(user_id, policy) if isinstance(user_id, str) and isinstance(policy, str) else None


def foreign_error(path: Path | str, found: Key) -> StateDamaged:
    """Return the error for a file that has another user's document, or another policy's."""
    return _damaged(path, _about(found))


def is_whole(content: bytes) -> bool:
    """Return whether a file's content ends with the checksum of the rest; files of 0.2 have none."""
    before, _, checksum = content.rpartition(_BEFORE_CHECKSUM)
    return checksum == _checksum(before)


def _checksum(content: bytes) -> bytes:
    """Return the end of a document, which shows whether what is before it is whole."""
    return b"%d}\n" % crc32(content)


def _about(found: Key) -> ValueError:
    return ValueError(f"it is about {shown(found.user_id)} with {shown(found.policy)}")


def _damaged(path: Path | str, error: Exception) -> StateDamaged:
    return StateDamaged(f"{path} can't be used as a state: {error}; restore a backup, or reset the user")


def _user_state(data: dict[str, Any]) -> UserState:
    user_state = UserState(**data)
    counts = (user_state.duplicates, user_state.late, user_state.updated_ms or 0)
    fits = isinstance(user_state.feature_version, str) and isinstance(user_state.state, dict)
    if not fits or any(type(count) is not int for count in counts):
        raise ValueError("the data stored beside the events is of another kind")
    return user_state


def _revision(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"its revision is {shown(value)}")
    return value


def _values(event: Event) -> list[Any]:
    return [getattr(event, name) for name in _COLUMNS]


def _with_all_columns(values: list[Any]) -> list[Any]:
    return [*values, *[None] * (len(_COLUMNS) - len(values))]


def _row(values: list[Any]) -> _Row:
    return _Row(to_json(values), values[_REWARD] is None and not values[_LATE])


def _event(row: _Row) -> Event:
    """Parse and validate a row; raise StateDamaged if it is malformed."""
    values = from_json(row.content)
    try:
        return _EVENT.validate_python(dict(zip(_COLUMNS, values, strict=True)))
    except ValueError as error:
        raise StateDamaged(f"the event {shown(values[0])} was not written by tipbench; reset the user") from error
