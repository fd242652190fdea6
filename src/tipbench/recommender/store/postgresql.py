"""States in PostgreSQL, for those who outgrow one machine: a row a user and policy, and a row an event.

Whoever holds a user with a policy holds the lock on its row, in a transaction that ends with the block; a process that
is killed ends it too, without a trace. Every connection says, by a shared advisory lock, that the store is in use, so
that nobody moves what is in it meanwhile; and looks whether it was moved since.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tipbench.core.errors import InvalidInput, StateRefused, StoreUnreachable
from tipbench.recommender.promotion.postgresql import PostgresPromotions
from tipbench.recommender.store import postgresql_tables as sql
from tipbench.recommender.store.interface import (
    Event,
    Key,
    Mark,
    Transaction,
    UserState,
    check_unmarked,
    check_user_id,
    is_moved_now,
    is_used,
)
from tipbench.recommender.store.postgresql_connections import MOST, Connection, Connections, Cursor, DatabaseUrl

NAME = "postgresql"
_ATTEMPTS = 10  # to lock a row that others make and delete at the same time


class PostgresStore:
    """Safe to be used by many threads and processes at once, on many machines."""

    name = NAME

    def __init__(self, url: str, exclusive: bool = False) -> None:
        """`alone` is for moving: nobody else may use it meanwhile, and a mark is no hindrance."""
        database = DatabaseUrl.of(url)
        self.address = database.address
        self._alone = exclusive
        self._connections = Connections(database, self._set_up, 1 if exclusive else MOST)
        self.promotions = PostgresPromotions(self._connections, self.address)

    @contextmanager
    def transaction(self, key: Key, event_id: str | None = None) -> Iterator[Transaction]:
        check_user_id(key.user_id)
        first = f"{sql.BEGIN}; {sql.LOCKED}; {sql.EVENT}"
        with self._connections.begun(first, [*key, *key, event_id]) as cursor:
            row = _next_row(cursor)
            if row is None:
                row = self._new_row(cursor, key, event_id)
            transaction = _Held(cursor, key, row)
            if event_id is not None:
                transaction.found(event_id, _next_row(cursor))
            yield transaction
            transaction.store()

    def read_state(self, key: Key) -> UserState | None:
        row = self._asked_one(sql.KEPT, key)
        return None if row is None else sql.state_of_row(row, key)

    def waiting(self, key: Key) -> int:
        (count,) = self._asked_one(sql.WAITING, key) or (0,)
        return int(count)

    def events(self, key: Key) -> list[Event]:
        check_user_id(key.user_id)
        with self._connections.begun(sql.OLDEST_FIRST, key) as cursor:
            return [sql.event_of(row) for row in cursor.fetchall()]

    def clear(self, user_id: str, policies: Iterable[str]) -> list[str]:
        """Those that are locked, and no others: one that somebody makes meanwhile keeps its events."""
        check_user_id(user_id)
        policies = list(policies)
        with self._connections.begun(f"{sql.BEGIN}; {sql.LOCK_USER}", (user_id, policies)) as cursor:
            cursor.nextset()
            locked = {policy: state_id for state_id, policy in cursor.fetchall()}
            ids = list(locked.values())
            cursor.execute(f"{sql.CLEAR_EVENTS}; {sql.CLEAR_STATES}; COMMIT", (ids, user_id, ids))
        return [policy for policy in policies if policy in locked]

    def keys(self) -> Iterator[Key]:
        last = Key("", "")
        while True:
            with self._connections.begun(sql.KEYS, last) as cursor:
                page = [Key(*row) for row in cursor.fetchall()]
            if not page:
                return
            yield from page
            last = page[-1]

    def close(self) -> None:
        self._connections.close()

    @property
    def mark(self) -> Mark | None:
        with self._connections.begun(sql.STORE) as cursor:
            _, data = cursor.fetchone() or (None, None)
        return sql.mark_of(data)

    def set_mark(self, mark: Mark | None) -> None:
        with self._connections.begun(sql.SET_MARK, [sql.mark_text(mark)]):
            pass

    def write(self, key: Key, user_state: UserState | None, events: Sequence[Event]) -> None:
        check_user_id(key.user_id)
        first = f"{sql.BEGIN}; {sql.NEW}; {sql.KEEP}; {sql.DELETE_EVENTS}"
        with self._connections.begun(first, [*key, *sql.state_values(user_state), *key, *key]) as cursor:
            cursor.nextset()
            state_id, *_ = _next_row(cursor) or (None,)
            with cursor.copy(sql.COPY) as copy:
                for seq, event in enumerate(events, 1):
                    copy.write_row([*key, state_id, seq, *sql.event_values(event)])
            cursor.execute("COMMIT")

    def _set_up(self, connection: Connection) -> None:
        there, encoding = connection.execute(sql.FIND).fetchone() or (False, "")
        if encoding != "UTF8":
            raise InvalidInput(f"the database {self.address} is in {encoding}; make one with ENCODING 'UTF8'")
        if not there:
            connection.execute(sql.CREATE)
        connection.execute(sql.SET_UP)
        (locked,) = connection.execute(sql.LOCK_ALONE if self._alone else sql.LOCK_SHARED).fetchone() or (False,)
        if not locked:
            raise (is_used if self._alone else is_moved_now)(self.address)
        schema, mark = connection.execute(sql.STORE).fetchone() or (None, None)
        if schema != sql.SCHEMA:
            raise StateRefused(
                f"the tables in {self.address} have the schema {schema}, and this tipbench knows {sql.SCHEMA}; "
                "install the one that made them"
            )
        if not self._alone:
            check_unmarked(sql.mark_of(mark), self.name, self.address)

    def _asked_one(self, query: str, key: Key) -> tuple[Any, ...] | None:
        check_user_id(key.user_id)
        with self._connections.begun(query, key) as cursor:
            return cursor.fetchone()

    def _new_row(self, cursor: Cursor, key: Key, event_id: str | None) -> tuple[Any, ...]:
        for _ in range(_ATTEMPTS):
            cursor.execute(f"{sql.NEW}; {sql.LOCKED}; {sql.EVENT}", [*key, *key, *key, event_id])
            row = _next_row(cursor)
            if row is not None:
                return row
        raise StoreUnreachable(f"{key.user_id} is reset in {self.address} again and again just now; try again")


class _Held:
    """Implements `Held`: remembers what was put and kept until all of it is written."""

    def __init__(self, cursor: Cursor, key: Key, row: tuple[Any, ...]) -> None:
        self._cursor = cursor
        self._key = key
        self._id, *user_state = row
        self._read = sql.state_of_row(user_state, key)
        self.user_state = self._read
        self._known: dict[str, Event | None] = {}
        self._put: dict[str, Event] = {}

    def found(self, event_id: str, row: tuple[Any, ...] | None) -> None:
        self._known[event_id] = None if row is None else sql.event_of(row)

    def event(self, event_id: str) -> Event | None:
        if event_id in self._put:
            return self._put[event_id]
        if event_id not in self._known:
            self._cursor.execute(sql.EVENT, [*self._key, event_id])
            self.found(event_id, self._cursor.fetchone())
        return self._known[event_id]

    def put(self, event: Event) -> None:
        self.event(event.id)  # whether it is a new one
        self._put[event.id] = event

    def keep(self, user_state: UserState) -> None:
        self.user_state = user_state

    def store(self) -> None:
        """All in one message, if there is anything; what has not changed is not written."""
        statements: list[str] = []
        values: list[Any] = []
        for event in self._put.values():
            if self._known[event.id] is None:
                statements.append(sql.PUT_NEW)
                values += [self._id, self._id, *self._key, self._id, *sql.event_values(event)]
            else:
                statements.append(sql.PUT_AGAIN)
                values += [*sql.event_values(event), *self._key, event.id]
        if self.user_state is not None and self.user_state is not self._read:
            statements.append(sql.KEEP)
            values += [*sql.state_values(self.user_state), *self._key]
        if statements:
            self._cursor.execute("; ".join((*statements, "COMMIT")), values)


def _next_row(cursor: Cursor) -> tuple[Any, ...] | None:
    """Of the next statement of a message."""
    cursor.nextset()
    return cursor.fetchone()
