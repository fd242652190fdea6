"""The key of a service whose visitors are programs: one, which opens all of it.

Only a salted SHA-256 of it is stored, for the reason that `tokens.py` gives.
"""

import hmac
import re
import stat
from pathlib import Path

from tipbench.core.errors import InvalidInput
from tipbench.core.files import PRIVATE, atomic_create, atomic_write, private_file
from tipbench.web.tokens import check_given, new_salt, new_token, token_digest

_STORED = re.compile(r"([0-9a-f]{32}) ([0-9a-f]{64})\n")


class ServiceKey:
    """A given key counts instead of a stored one, and is stored nowhere. What another process stores counts at once."""

    def __init__(self, path: Path, setting: str, given: str = "") -> None:
        if given:
            check_given(setting, given)
        self._path = path
        self._setting = setting
        self._is_given = bool(given)
        self._salt = new_salt()
        self._digest = token_digest(self._salt, given)
        self._read_at: tuple[int, int] | None = None

    def is_there(self) -> bool:
        return self._is_given or self._path.exists()

    def ensure(self) -> str | None:
        """A new key, to be shown once; None when there is one already."""
        if self._is_given:
            return None
        if self._path.exists():
            self._read()
            return None
        key, text = _new()
        return key if atomic_create(self._path, f"{text}\n") else None

    def renew(self) -> str:
        """A new key; the old one is void."""
        if self._is_given:
            raise InvalidInput(f"the key is set by {self._setting}; set another one there and start again")
        key, text = _new()
        atomic_write(self._path, f"{text}\n", mode=PRIVATE)
        return key

    def fits(self, key: str) -> bool:
        """In a time that tells nothing about the right one."""
        if not self.is_there():
            return False
        if not self._is_given:
            self._read()
        return hmac.compare_digest(token_digest(self._salt, key), self._digest)

    def _read(self) -> None:
        stands = self._path.stat()
        stamp = (stands.st_ino, stands.st_mtime_ns)
        if stamp == self._read_at:
            return
        is_file = stat.S_ISREG(stands.st_mode)  # a pipe would be waited for
        text = private_file(self._path).read_text(encoding="ascii", errors="replace") if is_file else ""
        found = _STORED.fullmatch(text)
        if not found:
            raise InvalidInput(f"{self._path} is not a key that tipbench made; --new-key makes another in its place")
        self._salt, self._digest = bytes.fromhex(found[1]), bytes.fromhex(found[2])
        self._read_at = stamp


def _new() -> tuple[str, str]:
    """A key, and what is stored of it."""
    key, salt = new_token(), new_salt()
    return key, f"{salt.hex()} {token_digest(salt, key).hex()}"
