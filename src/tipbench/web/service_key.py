"""The API key of a service that is used by programs: a single key, which grants access to everything.

Only a salted SHA-256 of it is stored, for the reason given in `tokens.py`.
"""

import hmac
import re
import stat
from pathlib import Path

from tipbench.core.errors import InvalidInput
from tipbench.core.files import PRIVATE, atomic_create, atomic_write, private_file
from tipbench.web.tokens import check_configured_token, new_salt, new_token, token_digest

_STORED = re.compile(r"([0-9a-f]{32}) ([0-9a-f]{64})\n")


class ServiceKey:
    """The key of a service. A configured key replaces the stored one, and is never stored itself.

    A key that another process stores is effective at once.
    """

    def __init__(self, path: Path, setting: str, configured: str = "") -> None:
        if configured:
            check_configured_token(setting, configured)
        self._path = path
        self._setting = setting
        self._is_configured = bool(configured)
        self._salt = new_salt()
        self._digest = token_digest(self._salt, configured)
        self._read_stamp: tuple[int, int] | None = None

    def exists(self) -> bool:
        return self._is_configured or self._path.exists()

    def ensure(self) -> str | None:
        """Create a key and return it, to be shown once; None if there is one already."""
        if self._is_configured:
            return None
        if self._path.exists():
            self._read()
            return None
        key, text = _new_key()
        return key if atomic_create(self._path, f"{text}\n") else None

    def renew(self) -> str:
        """Replace the key and return the new one. The old key becomes invalid."""
        if self._is_configured:
            raise InvalidInput(f"the key is set by {self._setting}; set another one there and restart")
        key, text = _new_key()
        atomic_write(self._path, f"{text}\n", mode=PRIVATE)
        return key

    def matches(self, key: str) -> bool:
        """Return whether this is the key, in constant time."""
        if not self.exists():
            return False
        if not self._is_configured:
            self._read()
        return hmac.compare_digest(token_digest(self._salt, key), self._digest)

    def _read(self) -> None:
        status = self._path.stat()
        stamp = (status.st_ino, status.st_mtime_ns)
        if stamp == self._read_stamp:
            return
        is_file = stat.S_ISREG(status.st_mode)  # reading a pipe would block
        text = private_file(self._path).read_text(encoding="ascii", errors="replace") if is_file else ""
        found = _STORED.fullmatch(text)
        if not found:
            raise InvalidInput(f"{self._path} is not a key made by tipbench; --new-key replaces it")
        self._salt, self._digest = bytes.fromhex(found[1]), bytes.fromhex(found[2])
        self._read_stamp = stamp


def _new_key() -> tuple[str, str]:
    """Return a new key, and the text to store for it."""
    key, salt = new_token(), new_salt()
    return key, f"{salt.hex()} {token_digest(salt, key).hex()}"
