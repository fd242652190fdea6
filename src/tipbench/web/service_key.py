"""The key of a service whose visitors are programs: one, which opens all of it.

Only a salted SHA-256 of it is stored, for the reason that `tokens.py` gives.
"""

import hmac
import logging
import re
import stat
from pathlib import Path
from typing import Literal

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from tipbench.core.errors import InvalidInput, TipbenchError
from tipbench.core.files import PRIVATE, atomic_create, atomic_write, private_file
from tipbench.web.attempts import Attempts
from tipbench.web.authentication import CHALLENGE, by_bearer
from tipbench.web.errors import Errors, Faults, install_errors
from tipbench.web.headers import BodyLimit, SecurityHeaders
from tipbench.web.hosts import Guard
from tipbench.web.log import AccessLog, is_done
from tipbench.web.paths import PathRules, covered, is_plain
from tipbench.web.tokens import check_given, new_salt, new_token, token_digest

_KEPT = re.compile(r"([0-9a-f]{32}) ([0-9a-f]{64})\n")
_log = logging.getLogger(__name__)


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
        found = _KEPT.fullmatch(text)
        if not found:
            raise InvalidInput(f"{self._path} is not a key that tipbench made; --new-key makes another in its place")
        self._salt, self._digest = bytes.fromhex(found[1]), bytes.fromhex(found[2])
        self._read_at = stamp


def _new() -> tuple[str, str]:
    """A key, and what is kept of it."""
    key, salt = new_token(), new_salt()
    return key, f"{salt.hex()} {token_digest(salt, key).hex()}"


# The gate of a service with one key: whoever has it may go everywhere, and nobody else anywhere but where all may.


class KeyGate(Guard):
    """Middleware. It stands before the router, so without the key nobody learns what there is."""

    def __init__(self, app: ASGIApp, key: ServiceKey, attempts: Attempts, rules: PathRules, errors: Errors) -> None:
        super().__init__(app)
        self._key = key
        self._attempts = attempts
        self._open = rules.open
        self._errors = errors

    def _refusal(self, request: Request) -> Response | None:
        if not is_plain(request.scope):
            return self._errors.answer(request, 400, "this path can't be used; take the plain one")
        if covered(request.scope["path"], self._open):
            return None
        if "authorization" not in request.headers:
            message = "this needs the service's key; send it in the header 'Authorization: Bearer …'"
            return self._errors.answer(request, 401, message, headers=CHALLENGE)
        try:
            found = by_bearer(request, self._errors, self._check, "key")
        except (TipbenchError, OSError) as error:
            _log.error("nobody can be let in: %s", error)
            message = "the service can't read its key, so nobody can be let in; its log says why"
            return self._errors.answer(request, 503, message)
        return found if isinstance(found, Response) else None

    def _check(self, key: str, address: str) -> Literal[True] | None:
        return self._attempts.tried(address, key, lambda given: True if self._key.fits(given) else None)


# Puts all of it around a service with one key, in the order that `protection.py` has for the others.


def protect_by_key(app: FastAPI, key: ServiceKey, attempts: Attempts, rules: PathRules) -> None:
    """Programs ask it many times a second, so what went well has no line in the log."""
    errors = install_errors(app)
    app.add_exception_handler(OSError, errors.of_storage)
    app.add_middleware(BodyLimit, rules=rules, errors=errors)
    app.add_middleware(KeyGate, key=key, attempts=attempts, rules=rules, errors=errors)
    app.add_middleware(Faults, errors=errors)
    app.add_middleware(SecurityHeaders, rules=rules)
    app.add_middleware(AccessLog, quiet=is_done)
