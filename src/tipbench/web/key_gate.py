"""The gate of a service with one key: whoever has it may go everywhere, and nobody else anywhere but where all may."""

import logging
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from tipbench.core.errors import TipbenchError
from tipbench.web.attempts import Attempts
from tipbench.web.bearer import CHALLENGE, by_bearer
from tipbench.web.errors import Errors
from tipbench.web.guard import Guard
from tipbench.web.key import ServiceKey
from tipbench.web.paths import PathRules, covered, is_plain

_log = logging.getLogger(__name__)


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
