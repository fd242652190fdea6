"""One shape for every error: `{"error": {"code": …, "message": …, "problems": […]}}`; for browsers, a page instead."""

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tipbench.core.errors import (
    Conflict,
    DatabaseBusy,
    EngineBusy,
    EngineUnreachable,
    InvalidInput,
    LockTaken,
    MissingExtra,
    NotFound,
    NothingStored,
    Problems,
    RunnerError,
    StateDamaged,
    StateRefused,
    StoredDataDamaged,
    StoreUnreachable,
    SuiteError,
    TipbenchError,
    TrackingRefused,
    TrackingUnreachable,
)
from tipbench.core.untrusted import json_text, printable
from tipbench.web.paths import API, covers
from tipbench.web.tokens import Visitor
from tipbench.web.validation import problems_in

_LONGEST_MESSAGE = 1000
_MOST_PROBLEMS = 100
_log = logging.getLogger(__name__)

ErrorPage = Callable[[Request, int, str, Sequence[str]], Response]
_STATUSES: Sequence[tuple[type[TipbenchError], int]] = (
    (NotFound, 404),
    (NothingStored, 404),
    (Conflict, 409),
    (InvalidInput, 422),
    (EngineUnreachable, 503),
    (EngineBusy, 503),
    (TrackingUnreachable, 503),
    (TrackingRefused, 503),
    (RunnerError, 503),
    (MissingExtra, 503),
    (LockTaken, 409),
    (DatabaseBusy, 503),
    (StateRefused, 409),
    (StoredDataDamaged, 500),
)
_CODES = {413: "too_large", 422: "invalid_input", 429: "too_many_attempts", 500: "internal_error"}
_FOR_JUDGES = "this can't be had right now; try again in a while, or ask whoever runs the bench"
_NO_STATES = "states can't be read or written right now; send it again in a while; the server's log says why"
_SENTENCES = {
    404: "there is nothing at {path}",
    405: "{method} is not for {path}",
    413: "the request's body is too large",
}


class ErrorBody(BaseModel):
    code: str
    message: str
    problems: list[str] = []


class ErrorAnswer(BaseModel):
    """What every error looks like."""

    error: ErrorBody


def error_responses(descriptions: Mapping[int, str]) -> dict[int | str, dict[str, Any]]:
    """For OpenAPI: `APIRouter(responses=…)`."""
    return {status: {"model": ErrorAnswer, "description": words} for status, words in descriptions.items()}


ERROR_RESPONSES = error_responses(
    {
        400: "The request can't be read.",
        401: "No token, or not a valid one.",
        403: "Not for this visitor.",
        404: "There is no such thing.",
        409: "Something else is at it.",
        413: "The body is too large.",
        422: "The request can't be carried out; `problems` lists everything that is wrong with it.",
        429: "Too many failed attempts.",
        500: "Something went wrong; the server's log has it.",
        503: "An engine, the tracking server or the place where runs happen does not answer.",
    }
)


class Errors:
    """Turns what went wrong into an answer: JSON for programs, a page for people."""

    def __init__(self, page: ErrorPage | None = None) -> None:
        self._page = page

    def answer(
        self,
        request: Request,
        status: int,
        message: str,
        problems: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        message = printable(message, _LONGEST_MESSAGE)
        shown = [printable(problem, _LONGEST_MESSAGE) for problem in problems[:_MOST_PROBLEMS]]
        if len(problems) > _MOST_PROBLEMS:
            shown.append(f"and {len(problems) - _MOST_PROBLEMS} more")
        if self._page and wants_page(request):
            response = self._page(request, status, message, shown)
            response.status_code = status
        else:
            content = ErrorAnswer(error=ErrorBody(code=_code(status), message=message, problems=shown))
            response = Response(json_text(content.model_dump(), indent=None), status, media_type="application/json")
        response.headers.update(headers or {})
        return response

    def unforeseen(self, request: Request, error: Exception) -> Response:
        """Says nothing about what happened but where the log has it."""
        number = _logged(request, "went wrong", error)
        return self.answer(request, 500, f"something went wrong here; the server's log has it under {number}")

    async def of_storage(self, request: Request, error: Exception) -> Response:
        """A disk that is full or away: told as such, and where is for the log alone."""
        assert isinstance(error, OSError)
        number = _logged(request, "could not read or write", error)
        why = error.strerror or type(error).__name__
        message = (
            f"nothing can be stored here right now ({why}); try again later; the server's log has it under {number}"
        )
        return self.answer(request, 503, message)

    async def of_ours(self, request: Request, error: Exception) -> Response:
        status = next((status for kind, status in _STATUSES if isinstance(error, kind)), None)
        if isinstance(error, StateDamaged):
            number = _logged(request, "found damaged data", error)
            message = f"what the recommender keeps for this is damaged; the server's log says more under {number}"
            return self.answer(request, 500, message)
        if isinstance(error, StoreUnreachable):  # which database it is, and what it said, is not for clients
            _log.warning("%s %s: %s", request.method, printable(request.scope["path"], 200), printable(str(error)))
            return self.answer(request, 503, _NO_STATES)
        if status is None:
            return self.unforeseen(request, error)
        if _tells_too_much(request, error):
            _log.warning("%s: %s", printable(request.scope["path"], 200), printable(str(error)))
            return self.answer(request, status, _FOR_JUDGES)
        headers = {}
        if isinstance(error, EngineBusy) and error.retry_after_s is not None:
            headers["Retry-After"] = str(round(error.retry_after_s))
        if isinstance(error, Problems):
            return self.answer(request, status, error.headline.removesuffix(":"), error.problems, headers)
        return self.answer(request, status, str(error), headers=headers)

    async def of_validation(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return self.answer(request, 422, "the request can't be used", problems_in(error.errors()))

    async def of_http(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        status = error.status_code
        if status < 400:
            return Response(status_code=status, headers=error.headers)
        phrase = _phrase(status)
        told = isinstance(error.detail, str) and error.detail not in ("", phrase)
        sentence = _SENTENCES.get(status, phrase.lower())
        path = printable(request.scope["path"], 200)
        message = error.detail if told else sentence.format(path=path, method=request.method)
        return self.answer(request, status, message, headers=error.headers)


class Faults:
    """Answers what nobody foresaw. Starlette's own way to do so would leave the other middlewares out."""

    def __init__(self, app: ASGIApp, errors: Errors) -> None:
        self._app = app
        self._errors = errors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {}).update(visitor=None, session=None, csrf="", csrf_shown=False)
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except ClientDisconnect:
            return  # nobody is there to be answered
        except asyncio.CancelledError:  # by a server that ends, and has waited for this answer long enough
            if started:
                raise
            message = "the server is ending, and this may have been done or not; ask again"
            response = self._errors.answer(Request(scope), 503, message, headers={"Connection": "close"})
            await response(scope, receive, send)
        except Exception as error:
            request = Request(scope)
            if isinstance(error, TipbenchError):  # of what stands before the router
                response = await self._errors.of_ours(request, error)
            else:
                response = self._errors.unforeseen(request, error)
            if started:
                raise  # half an answer is out: only an ended connection tells that it is not a whole one
            await response(scope, receive, send)


def install_errors(app: FastAPI, page: ErrorPage | None = None) -> Errors:
    """Every error of this app in our shape; what nobody foresaw needs the middleware `Faults` as well."""
    errors = Errors(page)
    app.add_exception_handler(TipbenchError, errors.of_ours)
    app.add_exception_handler(RequestValidationError, errors.of_validation)
    app.add_exception_handler(HTTPException, errors.of_http)
    return errors


def wants_page(request: Request) -> bool:
    """Whether a person looks at the answer: a browser's navigation or a piece that htmx asks for."""
    if covers(API, request.scope["path"]):
        return False
    return "text/html" in request.headers.get("accept", "") or request.headers.get("hx-request") == "true"


def _tells_too_much(request: Request, error: Exception) -> bool:
    """Addresses and runs, by which a judge could find out what is judged; files of the server, to strangers."""
    visitor: Visitor | None = getattr(request.state, "visitor", None)
    if visitor is None and isinstance(error, DatabaseBusy):
        return True
    is_plain = isinstance(error, InvalidInput) and not isinstance(error, SuiteError)
    return visitor is not None and not visitor.is_admin and not is_plain


def _logged(request: Request, what: str, error: Exception) -> str:
    """The number by which whoever runs the server finds it."""
    number = secrets.token_hex(4)
    _log.error("%s: %s %s %s", number, request.method, printable(request.scope["path"], 200), what, exc_info=error)
    return number


def _phrase(status: int) -> str:
    return next((known.phrase for known in HTTPStatus if known == status), "Error")


def _code(status: int) -> str:
    return _CODES.get(status) or _phrase(status).lower().replace(" ", "_").replace("-", "_")


# Answers in JSON that hold whatever a model wrote.


class JsonAnswer(JSONResponse):
    """What UTF-8 can't hold, as half a surrogate pair, and what a terminal would obey is written as ``\\uXXXX``."""

    def render(self, content: Any) -> bytes:
        return json_text(content, indent=None).encode()
