"""A store in PostgreSQL, for deployments on several machines: one row per user and policy, and one row per event.

A transaction locks the row of its user and policy until the block ends; if the process is killed, the database rolls it
back. Every connection holds a shared advisory lock, which marks the store as in use so that it can't be moved
meanwhile, and checks on opening whether it has been moved.
"""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from psycopg.errors import Diagnostic, LockNotAvailable, QueryCanceled

from tipbench.core.errors import InvalidInput, StateRefused, StoreUnreachable
from tipbench.recommender.prior.postgresql import PostgresPriors
from tipbench.recommender.promotion.postgresql import PostgresPromotions
from tipbench.recommender.store import postgresql_tables as sql
from tipbench.recommender.store.interface import (
    Event,
    Key,
    Marker,
    Transaction,
    UserState,
    being_moved_error,
    check_usable,
    check_user_id,
    in_use_error,
)
from tipbench.recommender.store.postgresql_connections import (
    MAX_CONNECTIONS,
    Connection,
    Connections,
    Cursor,
    DatabaseUrl,
)

NAME = "postgresql"
_REWRITES, _REWRITE_PAUSE_S = 3, 0.2
_ATTEMPTS = 10  # to lock a row that others create and delete concurrently


class PostgresStore:
    """Thread-safe, and safe to use from several processes and machines at once."""

    name = NAME

    def __init__(self, url: str, exclusive: bool = False, with_marker: bool = False) -> None:
        """`exclusive` is for moving: nobody else can use the store meanwhile.

        A marker prevents opening it, except with `exclusive` or `with_marker`.
        """
        database = DatabaseUrl.parse(url)
        self.address = database.address
        self._exclusive = exclusive
        self._with_marker = with_marker
        self._connections = Connections(database, self._set_up, 1 if exclusive else MAX_CONNECTIONS)
        self.priors = PostgresPriors(self._connections, self.address)
        self.promotions = PostgresPromotions(self._connections, self.address)

    @contextmanager
    def transaction(self, key: Key, event_id: str | None = None) -> Iterator[Transaction]:
        check_user_id(key.user_id)
        first = f"{sql.BEGIN}; {sql.SELECT_STATE_FOR_UPDATE}; {sql.SELECT_EVENT}"
        with self._connections.execute(first, [*key, *key, event_id]) as cursor:
            row = _next_row(cursor)
            if row is None:
                row = self._new_row(cursor, key, event_id)
            transaction = _PostgresTransaction(cursor, key, row)
            if event_id is not None:
                transaction.set_known(event_id, _next_row(cursor))
            yield transaction
            transaction.store()

    def read_state(self, key: Key) -> UserState | None:
        row = self._fetch_one(sql.SELECT_STATE, key)
        return None if row is None else sql.state_of_row(row, key)

    def waiting(self, key: Key) -> int:
        (count,) = self._fetch_one(sql.COUNT_WAITING, key) or (0,)
        return int(count)

    def events(self, key: Key) -> list[Event]:
        check_user_id(key.user_id)
        with self._connections.execute(sql.SELECT_EVENTS_OLDEST_FIRST, key) as cursor:
            return [sql.event_of(row) for row in cursor.fetchall()]

    def clear(self, user_id: str, policies: Iterable[str]) -> list[str]:
        """Delete only the rows that were locked: a state created concurrently keeps its events."""
        check_user_id(user_id)
        policies = list(policies)
        with self._connections.execute(f"{sql.BEGIN}; {sql.LOCK_USER_STATES}", (user_id, policies)) as cursor:
            cursor.nextset()
            locked = {policy: state_id for state_id, policy in cursor.fetchall()}
            ids = list(locked.values())
            cursor.execute(f"{sql.CLEAR_EVENTS}; {sql.CLEAR_STATES}; COMMIT", (ids, user_id, ids))
        return [policy for policy in policies if policy in locked]

    def policies_of(self, user_id: str) -> list[str]:
        check_user_id(user_id)
        with self._connections.execute(sql.SELECT_POLICIES, [user_id, user_id]) as cursor:
            return [policy for (policy,) in cursor.fetchall()]

    def purge(self) -> list[str]:
        """Rewrite the tables without deleted rows; where requests would have to wait too long for it, vacuum them."""
        left = [table for table in sql.USER_TABLES if not self._rewrite(table)]
        refused = [table for table in left if not self._run_alone(sql.VACUUM + table, sql.DONT_LIMIT_TIME).is_allowed]
        sentences = [
            f"{self.address}: its write-ahead log, standbys and backups, until they are recycled or removed",
            f"other machines that serve from {self.address}: each has a decision log of its own; run this there too",
        ]
        if left:
            why = f" ({', '.join(refused)}: not even vacuumed, which autovacuum will do)" if refused else ""
            sentences.append(
                f"{self.address}: freed space in the files of {', '.join(left)}{why}, until it is written over; "
                "VACUUM FULL ends that, and locks the table meanwhile"
            )
        return sentences

    def _rewrite(self, table: str) -> bool:
        """Rewrite a table; return whether no deleted row is left. Those that a transaction may still see are."""
        for _ in range(_REWRITES):
            done = self._run_alone(sql.REWRITE + table, sql.LIMIT_TIME)
            if not done.is_allowed or not done.dead_rows:
                return done.is_allowed
            time.sleep(_REWRITE_PAUSE_S)
        return False

    def _run_alone(self, statement: str, limit: str) -> "_Vacuumed":
        """Run a statement that takes time and the owner's rights, until the limit."""
        done = _Vacuumed()
        with self._connections.execute(limit) as cursor:
            cursor.connection.add_notice_handler(done.note)
            cursor.connection.deadline = float("inf")  # type: ignore[attr-defined]
            try:
                cursor.execute(statement)
            except (LockNotAvailable, QueryCanceled):
                done.is_allowed = False
            finally:
                cursor.connection.remove_notice_handler(done.note)
                cursor.execute(sql.DONT_LIMIT_TIME)
        return done

    def keys(self) -> Iterator[Key]:
        last = Key("", "")
        while True:
            with self._connections.execute(sql.SELECT_KEYS, last) as cursor:
                page = [Key(*row) for row in cursor.fetchall()]
            if not page:
                return
            yield from page
            last = page[-1]

    def close(self) -> None:
        self._connections.close()

    @property
    def marker(self) -> Marker | None:
        with self._connections.execute(sql.SELECT_STORE) as cursor:
            _, data = cursor.fetchone() or (None, None)
        return sql.marker_from_data(data)

    def set_marker(self, marker: Marker | None) -> None:
        with self._connections.execute(sql.SET_MARKER, [sql.marker_json(marker)]):
            pass

    def write(self, key: Key, user_state: UserState | None, events: Sequence[Event]) -> None:
        check_user_id(key.user_id)
        first = f"{sql.BEGIN}; {sql.INSERT_STATE}; {sql.UPDATE_STATE}; {sql.DELETE_EVENTS}"
        with self._connections.execute(first, [*key, *sql.state_values(user_state), *key, *key]) as cursor:
            cursor.nextset()
            state_id, *_ = _next_row(cursor) or (None,)
            with cursor.copy(sql.COPY_EVENTS) as copy:
                for seq, event in enumerate(events, 1):
                    copy.write_row([*key, state_id, seq, *sql.event_values(event)])
            cursor.execute("COMMIT")

    def _set_up(self, connection: Connection) -> None:
        there, encoding = connection.execute(sql.FIND_TABLES).fetchone() or (False, "")
        if encoding != "UTF8":
            raise InvalidInput(
                f"the encoding of database {self.address} is {encoding}; create one with ENCODING 'UTF8'"
            )
        if not there:
            connection.execute(sql.CREATE_TABLES)
        connection.execute(sql.SET_UP)
        (locked,) = connection.execute(sql.LOCK_EXCLUSIVE if self._exclusive else sql.LOCK_SHARED).fetchone() or (
            False,
        )
        if not locked:
            raise (in_use_error if self._exclusive else being_moved_error)(self.address)
        schema, marker = connection.execute(sql.SELECT_STORE).fetchone() or (None, None)
        if schema != sql.SCHEMA:
            raise StateRefused(
                f"the tables in {self.address} have the schema {schema}, but this version of tipbench knows "
                f"{sql.SCHEMA}; "
                "install the version that made them"
            )
        if not self._exclusive and not self._with_marker:
            check_usable(sql.marker_from_data(marker), self.name, self.address)

    def _fetch_one(self, query: str, key: Key) -> tuple[Any, ...] | None:
        check_user_id(key.user_id)
        with self._connections.execute(query, key) as cursor:
            return cursor.fetchone()

    def _new_row(self, cursor: Cursor, key: Key, event_id: str | None) -> tuple[Any, ...]:
        for _ in range(_ATTEMPTS):
            cursor.execute(
                f"{sql.INSERT_STATE}; {sql.SELECT_STATE_FOR_UPDATE}; {sql.SELECT_EVENT}", [*key, *key, *key, event_id]
            )
            row = _next_row(cursor)
            if row is not None:
                return row
        raise StoreUnreachable(f"{key.user_id} is being reset in {self.address} repeatedly; try again")


class _PostgresTransaction:
    """Implements `Transaction`: buffers everything put until it is written at the end."""

    def __init__(self, cursor: Cursor, key: Key, row: tuple[Any, ...]) -> None:
        self._cursor = cursor
        self._key = key
        self._id, *user_state = row
        self._stored_state = sql.state_of_row(user_state, key)
        self.user_state = self._stored_state
        self._known: dict[str, Event | None] = {}
        self._put: dict[str, Event] = {}

    def set_known(self, event_id: str, row: tuple[Any, ...] | None) -> None:
        self._known[event_id] = None if row is None else sql.event_of(row)

    def event(self, event_id: str) -> Event | None:
        if event_id in self._put:
            return self._put[event_id]
        if event_id not in self._known:
            self._cursor.execute(sql.SELECT_EVENT, [*self._key, event_id])
            self.set_known(event_id, self._cursor.fetchone())
        return self._known[event_id]

    def put(self, event: Event) -> None:
        self.event(event.id)  # so that `store` knows whether it is new
        self._put[event.id] = event

    def put_state(self, user_state: UserState) -> None:
        self.user_state = user_state

    def store(self) -> None:
        """Write all changes and commit, in one message; send nothing if nothing changed."""
        statements: list[str] = []
        values: list[Any] = []
        for event in self._put.values():
            if self._known[event.id] is None:
                statements.append(sql.INSERT_EVENT)
                values += [self._id, self._id, *self._key, self._id, *sql.event_values(event)]
            else:
                statements.append(sql.UPDATE_EVENT)
                values += [*sql.event_values(event), *self._key, event.id]
        if self.user_state is not None and self.user_state is not self._stored_state:
            statements.append(sql.UPDATE_STATE)
            values += [*sql.state_values(self.user_state), *self._key]
        if statements:
            self._cursor.execute("; ".join((*statements, "COMMIT")), values)


def _next_row(cursor: Cursor) -> tuple[Any, ...] | None:
    """Return a row of the next statement's result, in a message of several statements."""
    cursor.nextset()
    return cursor.fetchone()


class _Vacuumed:
    """What the server says while it vacuums a table, in whatever language."""

    is_allowed = True
    dead_rows = 0  # that can't be removed yet

    def note(self, notice: Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            self.is_allowed = False
        number = re.match(r"\d+", notice.message_detail or "")
        self.dead_rows += int(number[0]) if number else 0
