"""Error responses: `{"error": {"code": …, "message": …, "problems": […]}}` for programs, an HTML page for browsers."""

import asyncio
import logging
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
    TipbenchError,
    TrackingRefused,
    TrackingUnreachable,
    is_about_input,
)
from tipbench.core.untrusted import json_text, printable
from tipbench.web.log import current_request_id
from tipbench.web.metrics import Metrics
from tipbench.web.paths import PROGRAMS, matches_any
from tipbench.web.tokens import Visitor
from tipbench.web.validation import problems_in

_MAX_MESSAGE_CHARS = 1000
_MAX_PROBLEMS = 100
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
# The stores whose errors these are; empty for the server's own.
_STORES: Sequence[tuple[type[TipbenchError], str]] = (
    (StoreUnreachable, ""),
    (TrackingUnreachable, "mlflow"),
    (TrackingRefused, "mlflow"),
    (DatabaseBusy, "sqlite"),
)
_CODES = {413: "too_large", 422: "invalid_input", 429: "too_many_attempts", 500: "internal_error"}
_HIDDEN_DETAILS = "this is not available right now; try again later, or ask whoever runs the bench"
_STORE_UNREACHABLE = "states can't be read or written right now; try again later; the server's log says why"
_DEFAULT_MESSAGES = {
    404: "there is nothing at {path}",
    405: "{method} is not supported for {path}",
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
    """Return the error responses for OpenAPI, as in `APIRouter(responses=…)`."""
    return {status: {"model": ErrorAnswer, "description": text} for status, text in descriptions.items()}


ERROR_RESPONSES = error_responses(
    {
        400: "The request can't be read.",
        401: "No token, or not a valid one.",
        403: "Not allowed for this user.",
        404: "Not found.",
        409: "It conflicts with what is there or under way; the message says with what.",
        413: "The body is too large.",
        422: "The request is not valid; `problems` lists everything that is wrong with it.",
        429: "Too many failed attempts.",
        500: "Something went wrong; the server's log has it.",
        503: "An engine, the tracking server or the runner does not answer.",
    }
)


class Errors:
    """Turns errors into responses: JSON for programs, a page for people."""

    def __init__(self, page: ErrorPage | None = None, metrics: Metrics | None = None) -> None:
        self._page = page
        self._metrics = metrics

    def answer(
        self,
        request: Request,
        status: int,
        message: str,
        problems: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Return the error response, with text made printable and limited in length."""
        message = printable(message, _MAX_MESSAGE_CHARS)
        shown = [printable(problem, _MAX_MESSAGE_CHARS) for problem in problems[:_MAX_PROBLEMS]]
        if len(problems) > _MAX_PROBLEMS:
            shown.append(f"and {len(problems) - _MAX_PROBLEMS} more")
        if self._page and wants_page(request):
            response = self._page(request, status, message, shown)
            response.status_code = status
        else:
            content = ErrorAnswer(error=ErrorBody(code=_code(status), message=message, problems=shown))
            response = Response(json_text(content.model_dump(), indent=None), status, media_type="application/json")
        response.headers.update(headers or {})
        return response

    def unexpected_error(self, request: Request, error: Exception) -> Response:
        """Log an unexpected error; the response only says under which number the log has it."""
        if self._metrics:
            self._metrics.count_unhandled_error()
        number = _log_error(request, "went wrong", error)
        return self.answer(request, 500, f"something went wrong here; the server's log has it under {number}")

    async def storage_error(self, request: Request, error: Exception) -> Response:
        """Report a full or missing disk as such (503). The paths are only in the log."""
        assert isinstance(error, OSError)
        if self._metrics:
            self._metrics.count_store_error("files")
        number = _log_error(request, "could not read or write", error)
        why = error.strerror or type(error).__name__
        message = (
            f"nothing can be stored here right now ({why}); try again later; the server's log has it under {number}"
        )
        return self.answer(request, 503, message)

    async def tipbench_error(self, request: Request, error: Exception) -> Response:
        status = next((status for kind, status in _STATUSES if isinstance(error, kind)), None)
        store = next((store for kind, store in _STORES if isinstance(error, kind)), None)
        if self._metrics and store is not None:
            self._metrics.count_store_error(store)
        if isinstance(error, StateDamaged):
            number = _log_error(request, "found damaged data", error)
            message = f"the recommender's data for this request is damaged; the server's log says more under {number}"
            return self.answer(request, 500, message)
        if isinstance(error, StoreUnreachable):  # clients must not learn which database it is, or what it said
            _log_warning(request, error)
            return self.answer(request, 503, _STORE_UNREACHABLE)
        if status is None:
            return self.unexpected_error(request, error)
        if _must_hide_details(request, error):
            _log_warning(request, error)
            return self.answer(request, status, _HIDDEN_DETAILS)
        headers = {}
        if isinstance(error, EngineBusy) and error.retry_after_s is not None:
            headers["Retry-After"] = str(round(error.retry_after_s))
        if isinstance(error, Problems):
            return self.answer(request, status, error.headline.removesuffix(":"), error.problems, headers)
        return self.answer(request, status, str(error), headers=headers)

    async def validation_error(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return self.answer(request, 422, "the request can't be used", problems_in(error.errors()))

    async def http_error(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        status = error.status_code
        if status < 400:
            return Response(status_code=status, headers=error.headers)
        phrase = _phrase(status)
        has_detail = isinstance(error.detail, str) and error.detail not in ("", phrase)
        default = _DEFAULT_MESSAGES.get(status, phrase.lower())
        path = printable(request.scope["path"], 200)
        message = error.detail if has_detail else default.format(path=path, method=request.method)
        return self.answer(request, status, message, headers=error.headers)


class UnhandledErrors:
    """Middleware that answers exceptions nobody handled. Starlette's own handler would bypass the other middleware."""

    def __init__(self, app: ASGIApp, errors: Errors) -> None:
        self._app = app
        self._errors = errors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {}).update(visitor=None, session=None, csrf="", csrf_shown=False)
        started = False

        async def tracked_send(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, tracked_send)
        except ClientDisconnect:
            return  # nobody is left to answer
        except asyncio.CancelledError:  # the server is shutting down and has waited long enough
            if started:
                raise
            message = "the server is shutting down, so the request may or may not have been carried out; try again"
            response = self._errors.answer(Request(scope), 503, message, headers={"Connection": "close"})
            await response(scope, receive, send)
        except Exception as error:
            request = Request(scope)
            if isinstance(error, TipbenchError):  # raised by middleware, before the router
                response = await self._errors.tipbench_error(request, error)
            else:
                response = self._errors.unexpected_error(request, error)
            if started:
                raise  # part of the response is sent: only closing the connection shows that it is incomplete
            await response(scope, receive, send)


def install_errors(app: FastAPI, page: ErrorPage | None = None, metrics: Metrics | None = None) -> Errors:
    """Install this app's error handlers. Unhandled exceptions need the middleware `UnhandledErrors` as well."""
    errors = Errors(page, metrics)
    app.add_exception_handler(TipbenchError, errors.tipbench_error)
    app.add_exception_handler(RequestValidationError, errors.validation_error)
    app.add_exception_handler(HTTPException, errors.http_error)
    return errors


def wants_page(request: Request) -> bool:
    """Return whether the response is for a person: a browser navigation or an htmx fragment."""
    if matches_any(request.scope["path"], PROGRAMS):
        return False
    return "text/html" in request.headers.get("accept", "") or request.headers.get("hx-request") == "true"


def _must_hide_details(request: Request, error: Exception) -> bool:
    """Return whether this visitor must not see the error's message.

    Addresses and runs could reveal to a judge what is being judged; anonymous visitors must not see server paths.
    """
    visitor: Visitor | None = getattr(request.state, "visitor", None)
    if visitor is None and isinstance(error, DatabaseBusy):
        return True
    return visitor is not None and not visitor.is_admin and not is_about_input(error)


def _log_error(request: Request, what: str, error: Exception) -> str:
    """Log an error with its traceback; return the request's id, by which an operator finds it in the log."""
    number = current_request_id()
    _log.error("%s: %s %s %s", number, request.method, printable(request.scope["path"], 200), what, exc_info=error)
    return number


def _log_warning(request: Request, error: Exception) -> None:
    path = printable(request.scope["path"], 200)
    _log.warning("%s: %s %s: %s", current_request_id(), request.method, path, printable(str(error)))


def _phrase(status: int) -> str:
    return next((known.phrase for known in HTTPStatus if known == status), "Error")


def _code(status: int) -> str:
    return _CODES.get(status) or _phrase(status).lower().replace(" ", "_").replace("-", "_")


# JSON responses that may contain arbitrary model output.


class JsonAnswer(JSONResponse):
    """A JSON response that escapes lone surrogates, which UTF-8 can't encode, and control characters as ``\\uXXXX``."""

    def render(self, content: Any) -> bytes:
        return json_text(content, indent=None).encode()
