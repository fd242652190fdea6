"""Connections to the database of states: few, kept for the next one, and none that anybody waits for endlessly.

Each request is bounded: by five seconds until it holds what it asked for, and by as many for storing it. A connection
that has died meanwhile, because the server was restarted, is replaced before anybody notices; while the server is away,
every request says so at once, and the first one after its return works. psycopg's own pool tells whoever waits only
that time is up: why no connection could be made goes to its log.
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
PATIENCE_S = 5.0
MOST = 8  # of one process; whoever comes when all are lent waits
Cursor = psycopg.ClientCursor[tuple[Any, ...]]


class DatabaseUrl(NamedTuple):
    """A database: how to connect to it, which may hold a password, and what may be shown of that."""

    conninfo: dict[str, Any]
    address: str

    @classmethod
    def of(cls, url: str) -> "DatabaseUrl":
        try:
            found = dict(conninfo_to_dict(url)) if url.startswith(("postgresql://", "postgres://")) else {}
        except psycopg.ProgrammingError:  # its message holds the URL
            found = {}
        host = str(found.get("host") or "")
        if not found or "@" in host:
            raise InvalidInput(
                f"{SETTING} is no address of a PostgreSQL database; write postgresql://user:password@host/name, "
                "with %40 for an @ in the password"
            )
        port = f":{found['port']}" if found.get("port") else ""
        name = found.get("dbname") or found.get("user") or ""
        return cls(found, printable(f"postgresql://{host}{port}/{name}", 200))


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """Gives up when its time is over, even if the server is frozen and closes nothing."""

    deadline = float("inf")

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
        return super().wait(self._in_time(gen), *args, **options)

    def _in_time(self, steps: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """psycopg looks in every tenth of a second with nothing, while there is nothing."""
        try:
            wanted = next(steps)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() > self.deadline:
                    self.close()
                    raise psycopg.OperationalError(f"no answer within {PATIENCE_S:.0f} s")
                wanted = steps.send(ready)
        except StopIteration as end:
            return end.value


class Connections:
    """Safe for threads. `set_up` is run on every new connection, and may refuse it."""

    def __init__(self, database: DatabaseUrl, set_up: Callable[[Connection], None], most: int = MOST) -> None:
        self._database = database
        self._set_up = set_up
        self._free = threading.BoundedSemaphore(most)
        self._idle: list[Connection] = []
        self._closed = False
        self._back(self._connected(_soon()))

    @contextmanager
    def begun(self, first: str, parameters: Sequence[Any] = ()) -> Iterator[Cursor]:
        """Sends this, and lends the connection on which it went through. What is not committed by the end of the block
        is rolled back."""
        deadline = _soon()
        if not self._free.acquire(timeout=PATIENCE_S):
            raise StoreUnreachable(
                f"all connections to {self._database.address} have been in use for {PATIENCE_S:.0f} s"
            )
        try:
            with self._translated():
                cursor = self._first(deadline, first, parameters)
                try:
                    yield cursor
                finally:
                    self._back(cursor.connection)  # type: ignore[arg-type]
        finally:
            self._free.release()

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def _first(self, deadline: float, query: str, parameters: Sequence[Any]) -> Cursor:
        while True:
            connection, known = self._taken(deadline)
            connection.deadline = deadline
            cursor = psycopg.ClientCursor(connection)
            try:
                cursor.execute(query, parameters)
            except BaseException as error:
                self._back(connection)
                died = isinstance(error, psycopg.OperationalError) and connection.closed
                if known and died and time.monotonic() < deadline:
                    continue  # it was dead before, and nobody had noticed
                raise
            connection.deadline = _soon()
            return cursor

    def _taken(self, deadline: float) -> tuple[Connection, bool]:
        """An idle one, or else a new one; and whether it was there before."""
        if self._closed:
            raise StoreUnreachable(f"the store at {self._database.address} was closed")
        with suppress(IndexError):
            return self._idle.pop(), True
        return self._connected(deadline), False

    def _connected(self, deadline: float) -> Connection:
        with self._translated():
            left = max(2, round(deadline - time.monotonic()))  # two is the least that libpq knows
            given = {**self._database.conninfo, "connect_timeout": left, "application_name": "tipbench"}
            connection = Connection.connect(autocommit=True, cursor_factory=psycopg.ClientCursor, **given)
            try:
                connection.deadline = _soon()
                self._set_up(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def _back(self, connection: Connection) -> None:
        if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
            connection.deadline = _soon()
            try:
                connection.execute("ROLLBACK")
            except psycopg.Error:
                connection.close()  # which rolls back as well
        if self._closed:
            connection.close()
        elif not connection.closed:
            self._idle.append(connection)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise self._in_our_words(error) from None  # what psycopg says may hold what must not be shown
        except UnicodeEncodeError as error:
            raise InvalidInput(f"{self._database.address} can't hold this text: {error.reason}") from error

    def _in_our_words(self, error: psycopg.Error) -> TipbenchError:
        database, told = self._database.address, self._told(error)
        code = error.sqlstate or ""
        if isinstance(error, psycopg.DataError):
            return InvalidInput(f"{database} can't hold this: {told}")
        if code.startswith("42") and code != "42501":
            return StateDamaged(f"the tables in {database} are not as tipbench made them: {told}; bring a backup back")
        if code == "42501":
            return StoreUnreachable(f"{database} does not let us: {told}; grant that to the user in {SETTING}")
        if code == "25006":
            return StoreUnreachable(f"{database} is read-only: {told}; name the server that takes writes in {SETTING}")
        if code == "55P03":
            return StoreUnreachable(f"somebody has held this user in {database} for seconds; try again")
        return StoreUnreachable(f"{database} can't be used: {told}; see that it runs, and check {SETTING}")

    def _told(self, error: psycopg.Error) -> str:
        """PostgreSQL's own words, the first line of them, without the password."""
        lines = str(error).strip().splitlines() or [type(error).__name__]
        text = error.diag.message_primary or lines[0]
        password = self._database.conninfo.get("password")
        return printable(text.replace(str(password), "…") if password else text, 200)


def _soon() -> float:
    return time.monotonic() + PATIENCE_S
