"""The token of a request, from its header to whoever can tell what it is worth."""

from collections.abc import Callable
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response

from tipbench.web.attempts import TooManyAttempts
from tipbench.web.errors import Errors

CHALLENGE = {"WWW-Authenticate": "Bearer"}
TOO_MANY = "too many failed attempts from this address; try again in {} s"
_Found = TypeVar("_Found")


def by_bearer(
    request: Request, errors: Errors, check: Callable[[str, str], _Found | None], name: str = "token"
) -> _Found | Response:
    """What the check finds for token and address, or the refusal. The header has to be there.

    `name`: what visitors know the token as.
    """
    given = request.headers.getlist("authorization")
    scheme, _, token = given[0].partition(" ")
    if len(given) > 1 or scheme.lower() != "bearer" or not token.strip():
        message = f"the Authorization header should be 'Bearer' and the {name}, once"
        return errors.answer(request, 401, message, headers=CHALLENGE)
    try:
        found = check(token.strip(), client_address(request))
    except TooManyAttempts as error:
        message = TOO_MANY.format(error.wait_s)
        return errors.answer(request, 429, message, headers={"Retry-After": str(error.wait_s)})
    if found is None:
        return errors.answer(request, 401, f"this {name} is not valid, or not any more", headers=CHALLENGE)
    return found


def client_address(request: Request) -> str:
    return request.client.host if request.client else "unknown"
