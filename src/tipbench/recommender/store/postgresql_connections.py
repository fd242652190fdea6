"""A small connection pool for the state database, with timeouts on everything.

Each request has five seconds to get what it asked for, and five more to store its changes. An idle connection that has
died, because the server was restarted, is replaced transparently; while the server is down, every request fails at
once, and the first one after its return works. psycopg's own pool reports only a timeout to the caller: the reason why
no connection could be made goes to its log.
"""

import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from tipbench.core.errors import InvalidInput, StateDamaged, StoreUnreachable, TipbenchError
from tipbench.core.untrusted import printable

SETTING = "TIPBENCH_POSTGRESQL_URL"
TIMEOUT_S = 5.0
MAX_CONNECTIONS = 8  # per process; when all are in use, callers wait
Cursor = psycopg.ClientCursor[tuple[Any, ...]]


class DatabaseUrl(NamedTuple):
    """How to connect to a database, possibly with a password, and its address in a form that may be shown."""

    conninfo: dict[str, Any]
    address: str

    @classmethod
    def parse(cls, url: str) -> "DatabaseUrl":
        try:
            found = dict(conninfo_to_dict(url)) if url.startswith(("postgresql://", "postgres://")) else {}
        except psycopg.ProgrammingError:  # its message would contain the URL
            found = {}
        host = str(found.get("host") or "")
        if not found or "@" in host:
            raise InvalidInput(
                f"{SETTING} is not the address of a PostgreSQL database; write postgresql://user:password@host/name, "
                "with %40 for an @ in the password"
            )
        port = f":{found['port']}" if found.get("port") else ""
        name = found.get("dbname") or found.get("user") or ""
        return cls(found, printable(f"postgresql://{host}{port}/{name}", 200))


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that gives up at its deadline, even if the server is frozen and never closes the connection."""

    deadline = float("inf")

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
        return super().wait(self._with_deadline(gen), *args, **options)

    def _with_deadline(self, steps: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Wrap psycopg's generator with the deadline: while idle, psycopg resumes it every tenth of a second."""
        try:
            wanted = next(steps)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() > self.deadline:
                    self.close()
                    raise psycopg.OperationalError(f"no answer within {TIMEOUT_S:.0f} s")
                wanted = steps.send(ready)
        except StopIteration as end:
            return end.value


class Connections:
    """The pool. Thread-safe. `set_up` is called for every new connection, and may raise to reject it."""

    def __init__(
        self, database: DatabaseUrl, set_up: Callable[[Connection], None], max_connections: int = MAX_CONNECTIONS
    ) -> None:
        self._database = database
        self._set_up = set_up
        self._slots = threading.BoundedSemaphore(max_connections)
        self._idle: list[Connection] = []
        self._closed = False
        self._give_back(self._connect(_new_deadline()))

    @contextmanager
    def execute(self, first: str, parameters: Sequence[Any] = ()) -> Iterator[Cursor]:
        """Execute `first` and yield its cursor, on a connection that is reserved until the block ends.

        Whatever is not committed by then is rolled back.
        """
        deadline = _new_deadline()
        if not self._slots.acquire(timeout=TIMEOUT_S):
            raise StoreUnreachable(
                f"all connections to {self._database.address} have been in use for {TIMEOUT_S:.0f} s"
            )
        try:
            with self._translate_errors():
                cursor = self._execute_first(deadline, first, parameters)
                try:
                    yield cursor
                finally:
                    self._give_back(cursor.connection)  # type: ignore[arg-type]
        finally:
            self._slots.release()

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def _execute_first(self, deadline: float, query: str, parameters: Sequence[Any]) -> Cursor:
        while True:
            connection, was_idle = self._acquire(deadline)
            connection.deadline = deadline
            cursor = psycopg.ClientCursor(connection)
            try:
                cursor.execute(query, parameters)
            except BaseException as error:
                self._give_back(connection)
                died = isinstance(error, psycopg.OperationalError) and connection.closed
                if was_idle and died and time.monotonic() < deadline:
                    continue  # it had died while idle
                raise
            connection.deadline = _new_deadline()
            return cursor

    def _acquire(self, deadline: float) -> tuple[Connection, bool]:
        """Return an idle connection, or else a new one; and whether it was idle."""
        if self._closed:
            raise StoreUnreachable(f"the store at {self._database.address} was closed")
        with suppress(IndexError):
            return self._idle.pop(), True
        return self._connect(deadline), False

    def _connect(self, deadline: float) -> Connection:
        with self._translate_errors():
            left = max(2, round(deadline - time.monotonic()))  # two is libpq's minimum
            options = {**self._database.conninfo, "connect_timeout": left, "application_name": "tipbench"}
            connection = Connection.connect(autocommit=True, cursor_factory=psycopg.ClientCursor, **options)
            try:
                connection.deadline = _new_deadline()
                self._set_up(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def _give_back(self, connection: Connection) -> None:
        if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
            connection.deadline = _new_deadline()
            try:
                connection.execute("ROLLBACK")
            except psycopg.Error:
                connection.close()  # which rolls back too
        if self._closed:
            connection.close()
        elif not connection.closed:
            self._idle.append(connection)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise self._translated(error) from None  # psycopg's message may contain secrets
        except UnicodeEncodeError as error:
            raise InvalidInput(f"{self._database.address} can't store this text: {error.reason}") from error

    def _translated(self, error: psycopg.Error) -> TipbenchError:
        database, message = self._database.address, self._message(error)
        code = error.sqlstate or ""
        if isinstance(error, psycopg.DataError):
            return InvalidInput(f"{database} can't store this: {message}")
        if code.startswith("42") and code != "42501":
            return StateDamaged(
                f"the tables in {database} have been changed since tipbench created them: {message}; restore a backup"
            )
        if code == "42501":
            return StoreUnreachable(f"{database} refuses permission: {message}; grant it to the user in {SETTING}")
        if code == "25006":
            return StoreUnreachable(f"{database} is read-only: {message}; name a writable server in {SETTING}")
        if code == "55P03":
            return StoreUnreachable(
                f"another process has held the lock of this user in {database} for seconds; try again"
            )
        return StoreUnreachable(
            f"{database} can't be used: {message}; make sure that it is running, and check {SETTING}"
        )

    def _message(self, error: psycopg.Error) -> str:
        """Return the first line of PostgreSQL's message, without the password."""
        lines = str(error).strip().splitlines() or [type(error).__name__]
        text = error.diag.message_primary or lines[0]
        password = self._database.conninfo.get("password")
        return printable(text.replace(str(password), "…") if password else text, 200)


def _new_deadline() -> float:
    return time.monotonic() + TIMEOUT_S
