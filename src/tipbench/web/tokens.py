"""Tokens: one for the admin, one for each judge who was invited; the file they are in, and who a visitor is.

Only a salted SHA-256 of a token is stored. A slow hash would slow down guessing, and there is nothing to guess: a token
is 256 random bits. It would only make every request slow.
"""

import hashlib
import hmac
import logging
import re
import secrets
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from tipbench.core.errors import DatabaseBusy, InvalidInput, NotFound
from tipbench.core.files import atomic_create, private_file, private_folder
from tipbench.core.names import check_shape
from tipbench.core.paths import server_folder
from tipbench.core.sqlite import BUSY_S, ConnectionLock, Database, connect
from tipbench.core.untrusted import shown

Role = Literal["admin", "judge"]
_SCHEMA = """
CREATE TABLE token (
    id TEXT PRIMARY KEY, role TEXT NOT NULL, name TEXT NOT NULL, salt BLOB NOT NULL, digest BLOB NOT NULL,
    created_ms INTEGER NOT NULL, last_seen_ms INTEGER, UNIQUE (role, name)
);
CREATE TABLE ended_session (id TEXT PRIMARY KEY, expires_ms INTEGER NOT NULL);
"""
_LEAST_LENGTH = 20
_SECRET = re.compile(r"[0-9a-f]{64}")
ADMIN_NAME = "person"  # by which an admin's scores are signed
_SEEN_EVERY_MS = 60_000
_log = logging.getLogger(__name__)


# Who is asking.


@dataclass(frozen=True)
class Visitor:
    """Somebody who has shown a token, or a cookie that was given for one."""

    role: Role
    name: str  # a judge's name, by which scores are signed; an admin judges as "person"

    @property
    def is_admin(self) -> bool:
        return self.role == "admin"


# Who may come in, in a small SQLite file that the server and the command line share.
#
# What it holds is read once and kept; SQLite's own counter of foreign commits says when to read it again. So asking
# costs microseconds, and what another process has changed is seen by the next request.


@dataclass(frozen=True)
class StoredToken:
    """A token without the token: from these 256 bits nobody finds the 256 random ones."""

    id: str
    role: Role
    name: str
    salt: bytes
    digest: bytes
    created_ms: int
    last_seen_ms: int | None


@dataclass(frozen=True)
class Stored:
    """All that the file holds."""

    tokens: tuple[StoredToken, ...]
    ended_sessions: frozenset[str]


class AccessFile:
    """One connection to write and one to read: every request is looked up in it, and none waits for who writes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database = Database(path, _SCHEMA, version=1)
        with self._database.connection() as database:
            database.execute("PRAGMA secure_delete = ON")
        self._reading = ConnectionLock(path)
        self._reader = connect(path, busy_s=0)
        self._seen = -1
        self._stored = Stored((), frozenset())

    def read(self) -> Stored:
        """What is in it now. Raises DatabaseBusy at once if the file can't be read."""
        with self._reading:
            (seen,) = self._reader.execute("PRAGMA data_version").fetchone()
            if seen != self._seen:
                self._stored = _read_all(self._reader)
                self._seen = seen
            return self._stored

    def write(self, busy_s: float = BUSY_S) -> AbstractContextManager[sqlite3.Connection]:
        """A transaction that has the file for itself from its beginning: nothing changes between look and leap."""
        return self._database.transaction(busy_s)

    def close(self) -> None:
        self._database.close()
        with self._reading:
            self._reader.close()


def _read_all(connection: sqlite3.Connection) -> Stored:
    columns = "id, role, name, salt, digest, created_ms, last_seen_ms"
    with closing(connection.execute(f"SELECT {columns} FROM token ORDER BY created_ms, name")) as rows:
        tokens = tuple(StoredToken(*row) for row in rows)
    with closing(connection.execute("SELECT id FROM ended_session")) as rows:
        return Stored(tokens, frozenset(session for (session,) in rows))


# What tokens and keys have in common: how one is made, how it is kept, and what a given one has to be like.


def new_token() -> str:
    """256 random bits."""
    return secrets.token_urlsafe(32)


def new_salt() -> bytes:
    return secrets.token_bytes(16)


def token_digest(salt: bytes, token: str) -> bytes:
    """All that is stored of a token."""
    return hashlib.sha256(salt + token.encode("utf-8", "surrogatepass")).digest()


def check_given(setting: str, token: str) -> None:
    """Refuses a token from a setting that is weak, or that could not travel."""
    if len(token) < _LEAST_LENGTH:
        raise InvalidInput(
            f"{setting} has {len(token)} characters; give it at least {_LEAST_LENGTH} that nobody can guess"
        )
    if not re.fullmatch(r"[!-~]+", token):
        raise InvalidInput(f"{setting} has characters that no header can carry; take letters and digits")


def server_secret(home: Path) -> bytes:
    """256 random bits that sign cookies, created on first use; removing the file ends all sessions."""
    path = private_folder(server_folder(home)) / "secret"
    if not path.exists():
        atomic_create(path, f"{secrets.token_hex(32)}\n")
    text = private_file(path).read_text(encoding="ascii", errors="replace").strip()
    if not _SECRET.fullmatch(text):
        raise InvalidInput(f"{path} is not a secret that tipbench made; remove it, and everybody signs in again")
    return bytes.fromhex(text)


class Grant(NamedTuple):
    """What a token gives: who its holder is, by which token. The id tells nothing about the token."""

    id: str
    visitor: Visitor


class JudgeAccess(NamedTuple):
    """A judge who may come in."""

    name: str
    created_ms: int
    last_seen_ms: int | None


NameCheck = Callable[[str], object]  # raises InvalidInput for a name that no judge may have


class Tokens:
    """All tokens that are good now. A given admin token counts instead of a stored one, and is stored nowhere."""

    def __init__(
        self, home: Path, clock: Callable[[], float], given_admin: str = "", check_name: NameCheck = check_shape
    ) -> None:
        if given_admin:
            check_given("TIPBENCH_ADMIN_TOKEN", given_admin)
        self._file = AccessFile(private_folder(server_folder(home)) / "access.db")
        self._clock = clock
        self._check_name = check_name
        self._given = given_admin
        self._given_salt = new_salt()
        # Not random: a restart with the same token leaves its sessions as they are.
        self._given_id = _given_id(server_secret(home), given_admin) if given_admin else ""
        self._noted: dict[str, int] = {}

    def has_admin(self) -> bool:
        return bool(self._given) or any(stored.role == "admin" for stored in self._file.read().tokens)

    def ensure_admin(self) -> str | None:
        """A new admin token, to be shown once; None when there is one already."""
        if self._given:
            return None
        with self._file.write() as db:
            if db.execute("SELECT 1 FROM token WHERE role = 'admin'").fetchone():
                return None
            return self._add(db, "admin", ADMIN_NAME)

    def renew_admin(self) -> str:
        """A new admin token; the old one and its sessions are void."""
        if self._given:
            raise InvalidInput("the admin token is set by TIPBENCH_ADMIN_TOKEN; set another one there and start again")
        with self._file.write() as db:
            db.execute("DELETE FROM token WHERE role = 'admin'")
            return self._add(db, "admin", ADMIN_NAME)

    def invite(self, name: str) -> str:
        """A judge's token, to be shown once."""
        self._check_name(name)
        if name == ADMIN_NAME:
            raise InvalidInput(f"'{ADMIN_NAME}' is the name by which admins judge; invite the judge by another name")
        with self._file.write() as db:
            if db.execute("SELECT 1 FROM token WHERE role = 'judge' AND name = ?", (name,)).fetchone():
                raise InvalidInput(f"'{name}' was invited already; revoke that invitation first to make a new token")
            return self._add(db, "judge", name)

    def revoke(self, name: str) -> None:
        """Ends a judge's token and its sessions."""
        with self._file.write() as db:
            if not db.execute("DELETE FROM token WHERE role = 'judge' AND name = ?", (name,)).rowcount:
                raise NotFound(f"no judge {shown(name)} is invited; nothing was changed")

    def judges(self) -> list[JudgeAccess]:
        tokens = self._file.read().tokens
        return [JudgeAccess(t.name, t.created_ms, t.last_seen_ms) for t in tokens if t.role == "judge"]

    def grant_of(self, token: str) -> Grant | None:
        """Compares with every token there is, whatever was found before, so that time tells nothing."""
        found: Grant | None = None
        for stored in self._file.read().tokens:
            fits = hmac.compare_digest(token_digest(stored.salt, token), stored.digest)
            if fits and not (self._given and stored.role == "admin"):
                found = Grant(stored.id, Visitor(stored.role, stored.name))
        given_fits = hmac.compare_digest(
            token_digest(self._given_salt, token), token_digest(self._given_salt, self._given)
        )
        if given_fits and self._given:
            found = Grant(self._given_id, Visitor("admin", ADMIN_NAME))
        if found:
            self._note_seen(found.id)
        return found

    def holder(self, grant_id: str) -> Visitor | None:
        """Who holds the token of that id; None once it is void."""
        if self._given and grant_id == self._given_id:
            return Visitor("admin", ADMIN_NAME)
        for stored in self._file.read().tokens:
            if stored.id == grant_id and not (self._given and stored.role == "admin"):
                self._note_seen(grant_id)
                return Visitor(stored.role, stored.name)
        return None

    def end_session(self, session_id: str, expires_ms: int) -> None:
        """Voids one session; remembered until it would have expired anyway."""
        with self._file.write() as db:
            db.execute("DELETE FROM ended_session WHERE expires_ms <= ?", (self._now_ms,))
            db.execute("INSERT OR IGNORE INTO ended_session VALUES (?, ?)", (session_id, expires_ms))

    def session_ended(self, session_id: str) -> bool:
        return session_id in self._file.read().ended_sessions

    def close(self) -> None:
        self._file.close()

    @property
    def _now_ms(self) -> int:
        return round(self._clock() * 1000)

    def _add(self, db: sqlite3.Connection, role: Role, name: str) -> str:
        token, salt = new_token(), new_salt()
        row = (secrets.token_hex(16), role, name, salt, token_digest(salt, token), self._now_ms, None)
        db.execute("INSERT INTO token VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        return token

    def _note_seen(self, grant_id: str) -> None:
        """Once a minute; nobody waits for it, since nothing hangs on it."""
        now = self._now_ms
        if now - self._noted.get(grant_id, -_SEEN_EVERY_MS) < _SEEN_EVERY_MS or grant_id == self._given_id:
            return
        self._noted[grant_id] = now
        try:
            with self._file.write(busy_s=0) as db:
                db.execute("UPDATE token SET last_seen_ms = ? WHERE id = ?", (now, grant_id))
        except (DatabaseBusy, sqlite3.OperationalError) as error:
            _log.warning("when a visitor was last here could not be noted: %s", error)


def _given_id(secret: bytes, token: str) -> str:
    """Keyed: the id travels in cookies, and nobody shall try guesses of a weak token on it."""
    return hmac.new(secret, b"tipbench given admin " + token.encode(), hashlib.sha256).hexdigest()[:32]
