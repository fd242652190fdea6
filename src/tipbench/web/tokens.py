"""Access tokens: one for the admin and one for each invited judge; the file that stores them, and the visitor's role.

Only a salted SHA-256 of a token is stored. A slow hash protects against guessing, which is hopeless anyway for 256
random bits; it would only slow down every request.
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
from tipbench.core.names import check_judge_name
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
_MIN_LENGTH = 20
_SECRET = re.compile(r"[0-9a-f]{64}")
ADMIN_NAME = "person"  # the judge name under which an admin's scores are stored
_LAST_SEEN_INTERVAL_MS = 60_000
_log = logging.getLogger(__name__)


# Visitors.


@dataclass(frozen=True)
class Visitor:
    """A user who has presented a token, or a session cookie issued for one."""

    role: Role
    name: str  # the judge name under which scores are stored; an admin judges as "person"

    @property
    def is_admin(self) -> bool:
        return self.role == "admin"


# The access file: a small SQLite database that the server and the command line share.
#
# Its content is cached in memory and reloaded when SQLite's `data_version` shows a commit by another connection. So a
# lookup takes microseconds, and the next request sees what another process has changed.


@dataclass(frozen=True)
class StoredToken:
    """A stored token: only its salted digest, from which the token itself can't be recovered."""

    id: str
    role: Role
    name: str
    salt: bytes
    digest: bytes
    created_ms: int
    last_seen_ms: int | None


@dataclass(frozen=True)
class AccessData:
    """The whole content of the access file."""

    tokens: tuple[StoredToken, ...]
    ended_sessions: frozenset[str]


class AccessFile:
    """Stores tokens and ended sessions. Requests read it over a separate connection, which never waits for writes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database = Database(path, _SCHEMA, version=1)
        with self._database.connection() as database:
            database.execute("PRAGMA secure_delete = ON")
        self._read_lock = ConnectionLock(path)
        self._reader = connect(path, busy_s=0)
        self._data_version = -1
        self._data = AccessData((), frozenset())

    def read(self) -> AccessData:
        """Return the current content. Raises DatabaseBusy at once, without waiting, if the file is locked."""
        with self._read_lock:
            (data_version,) = self._reader.execute("PRAGMA data_version").fetchone()
            if data_version != self._data_version:
                self._data = _read_all(self._reader)
                self._data_version = data_version
            return self._data

    def write(self, busy_s: float = BUSY_S) -> AbstractContextManager[sqlite3.Connection]:
        """Return an exclusive transaction, so that nothing changes between its reads and its writes."""
        return self._database.transaction(busy_s)

    def close(self) -> None:
        self._database.close()
        with self._read_lock:
            self._reader.close()


def _read_all(connection: sqlite3.Connection) -> AccessData:
    columns = "id, role, name, salt, digest, created_ms, last_seen_ms"
    with closing(connection.execute(f"SELECT {columns} FROM token ORDER BY created_ms, name")) as rows:
        tokens = tuple(StoredToken(*row) for row in rows)
    with closing(connection.execute("SELECT id FROM ended_session")) as rows:
        return AccessData(tokens, frozenset(session for (session,) in rows))


# Shared by tokens and service keys: generating, hashing, and checking configured ones.


def new_token() -> str:
    """Return a new token of 256 random bits."""
    return secrets.token_urlsafe(32)


def new_salt() -> bytes:
    return secrets.token_bytes(16)


def token_digest(salt: bytes, token: str) -> bytes:
    """Return the digest that is stored instead of the token."""
    return hashlib.sha256(salt + token.encode("utf-8", "surrogatepass")).digest()


def check_configured_token(setting: str, token: str) -> None:
    """Raise InvalidInput if a token from a setting is too short or can't be sent in an HTTP header."""
    if len(token) < _MIN_LENGTH:
        raise InvalidInput(f"{setting} has {len(token)} characters; use at least {_MIN_LENGTH} that nobody can guess")
    if not re.fullmatch(r"[!-~]+", token):
        raise InvalidInput(f"{setting} has characters that are not allowed in a header; use letters and digits")


def server_secret(home: Path) -> bytes:
    """Return the 256-bit key that signs cookies, creating it on first use. Deleting its file ends all sessions."""
    path = private_folder(server_folder(home)) / "secret"
    if not path.exists():
        atomic_create(path, f"{secrets.token_hex(32)}\n")
    text = private_file(path).read_text(encoding="ascii", errors="replace").strip()
    if not _SECRET.fullmatch(text):
        raise InvalidInput(f"{path} is not a secret made by tipbench; remove it, and everybody has to log in again")
    return bytes.fromhex(text)


class Grant(NamedTuple):
    """What a token grants: its holder's identity, and the token's id, which reveals nothing about the token itself."""

    id: str
    visitor: Visitor


class JudgeAccess(NamedTuple):
    """An invited judge."""

    name: str
    created_ms: int
    last_seen_ms: int | None


NameCheck = Callable[[str], object]  # raises InvalidInput for a name that a judge must not have


class Tokens:
    """All valid tokens. A configured admin token replaces the stored one, and is never stored itself."""

    def __init__(
        self, home: Path, clock: Callable[[], float], admin_token: str = "", check_name: NameCheck = check_judge_name
    ) -> None:
        if admin_token:
            check_configured_token("TIPBENCH_ADMIN_TOKEN", admin_token)
        self._file = AccessFile(private_folder(server_folder(home)) / "access.db")
        self._clock = clock
        self._check_name = check_name
        self._configured = admin_token
        self._configured_salt = new_salt()
        # Derived from the token, so that its sessions survive a restart.
        self._configured_id = _configured_id(server_secret(home), admin_token) if admin_token else ""
        self._last_seen_ms: dict[str, int] = {}

    def has_admin(self) -> bool:
        return bool(self._configured) or any(stored.role == "admin" for stored in self._file.read().tokens)

    def ensure_admin(self) -> str | None:
        """Create an admin token and return it, to be shown once; None if there is one already."""
        if self._configured:
            return None
        with self._file.write() as db:
            if db.execute("SELECT 1 FROM token WHERE role = 'admin'").fetchone():
                return None
            return self._add(db, "admin", ADMIN_NAME)

    def renew_admin(self) -> str:
        """Replace the admin token and return the new one. The old token and its sessions become invalid."""
        if self._configured:
            raise InvalidInput("the admin token is set by TIPBENCH_ADMIN_TOKEN; set another one there and restart")
        with self._file.write() as db:
            db.execute("DELETE FROM token WHERE role = 'admin'")
            return self._add(db, "admin", ADMIN_NAME)

    def invite(self, name: str) -> str:
        """Create a token for a new judge and return it, to be shown once."""
        self._check_name(name)
        if name == ADMIN_NAME:
            raise InvalidInput(
                f"'{ADMIN_NAME}' is the name under which admins judge; invite the judge under another name"
            )
        with self._file.write() as db:
            if db.execute("SELECT 1 FROM token WHERE role = 'judge' AND name = ?", (name,)).fetchone():
                raise InvalidInput(
                    f"'{name}' has already been invited; revoke that invitation first to make a new token"
                )
            return self._add(db, "judge", name)

    def revoke(self, name: str) -> None:
        """Invalidate a judge's token and its sessions; raise NotFound if there is no such judge."""
        with self._file.write() as db:
            if not db.execute("DELETE FROM token WHERE role = 'judge' AND name = ?", (name,)).rowcount:
                raise NotFound(f"no judge {shown(name)} is invited; nothing was changed")

    def judges(self) -> list[JudgeAccess]:
        tokens = self._file.read().tokens
        return [JudgeAccess(t.name, t.created_ms, t.last_seen_ms) for t in tokens if t.role == "judge"]

    def grant_of(self, token: str) -> Grant | None:
        """Return what a token grants, or None. Compares with every stored token, so that timing reveals nothing."""
        found: Grant | None = None
        for stored in self._file.read().tokens:
            fits = hmac.compare_digest(token_digest(stored.salt, token), stored.digest)
            if fits and not (self._configured and stored.role == "admin"):
                found = Grant(stored.id, Visitor(stored.role, stored.name))
        configured_fits = hmac.compare_digest(
            token_digest(self._configured_salt, token), token_digest(self._configured_salt, self._configured)
        )
        if configured_fits and self._configured:
            found = Grant(self._configured_id, Visitor("admin", ADMIN_NAME))
        if found:
            self._record_last_seen(found.id)
        return found

    def holder(self, grant_id: str) -> Visitor | None:
        """Return the holder of the token with this id; None if it is no longer valid."""
        if self._configured and grant_id == self._configured_id:
            return Visitor("admin", ADMIN_NAME)
        for stored in self._file.read().tokens:
            if stored.id == grant_id and not (self._configured and stored.role == "admin"):
                self._record_last_seen(grant_id)
                return Visitor(stored.role, stored.name)
        return None

    def end_session(self, session_id: str, expires_ms: int) -> None:
        """Invalidate a session. This is stored until the session would have expired anyway."""
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

    def _record_last_seen(self, grant_id: str) -> None:
        """Store when a token was last used, at most once a minute. Best effort: skipped if the file is locked."""
        now = self._now_ms
        if (
            now - self._last_seen_ms.get(grant_id, -_LAST_SEEN_INTERVAL_MS) < _LAST_SEEN_INTERVAL_MS
            or grant_id == self._configured_id
        ):
            return
        self._last_seen_ms[grant_id] = now
        try:
            with self._file.write(busy_s=0) as db:
                db.execute("UPDATE token SET last_seen_ms = ? WHERE id = ?", (now, grant_id))
        except (DatabaseBusy, sqlite3.OperationalError) as error:
            _log.warning("the time of a user's last visit could not be stored: %s", error)


def _configured_id(secret: bytes, token: str) -> str:
    """Return the id of a configured token. It is keyed: cookies contain it, and it must not help to guess the token."""
    return hmac.new(secret, b"tipbench given admin " + token.encode(), hashlib.sha256).hexdigest()[:32]
