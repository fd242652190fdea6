"""HTTP for engines: bounded retries on connection errors and 5xx, and translation of foreign errors in one place."""

import json
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from tipbench.core.errors import EngineBusy, EngineUnreachable, GenerationFailed, InvalidInput
from tipbench.core.http_pool import (
    ConnectTimeout,
    HttpError,
    HttpPool,
    InvalidAddress,
    NotConnected,
    Response,
    ResponseTimeout,
    UnusableContent,
)
from tipbench.core.untrusted import printable, without_credentials

PAUSES_S = (0.5, 2.0)  # before the second and the third try
_QUICK_TIMEOUT_S = 15.0  # for all requests but generations
_MAX_BYTES = 8_000_000  # of one response
_MAX_NAME_LENGTH = 200
_Result = TypeVar("_Result")
_MAX_TRIES = 10
_MAX_PAUSE_S = 60.0


class EngineHttp:
    """A client for one engine's base URL."""

    def __init__(
        self,
        url: str,
        what: str,
        advice: str,
        timeout_s: float,
        key: str = "",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.address = without_credentials(url)
        self._what = f"{what} at {self.address}"
        self._advice = advice
        self._timeout_s = timeout_s
        self._sleep = sleep
        self._key = key
        self._has_answered = False  # if it never answered, fail at once; if it did, it may be restarting
        headers = {"Authorization": f"Bearer {key}"} if key else None
        if not (key.isascii() and key.isprintable()):  # the HTTP library would repeat it in its error
            raise InvalidInput(
                f"the key for {self._what} contains characters that keys don't have, such as a line break"
            )
        try:
            self._pool = HttpPool(url, headers)
        except InvalidAddress as error:
            raise self._no_address() from error

    def get(self, path: str) -> Response:
        return self._send("GET", path, None, _QUICK_TIMEOUT_S)

    def post(self, path: str, body: dict[str, Any], *, generation: bool = False) -> Response:
        return self._send("POST", path, body, self._timeout_s if generation else _QUICK_TIMEOUT_S)

    def json(self, response: Response, *, generation: bool = False) -> dict[str, Any]:
        """Return the response's JSON object; raise GenerationFailed for an error status or anything else.

        Only a generation's error text is repeated: other requests may go to an address that somebody chose in order to
        have us reveal its content.
        """
        if response.has_redirect_location:
            raise GenerationFailed(
                f"{self._what} redirects to another address ({response.status_code}); use the final address"
            )
        if response.status_code >= 400:
            reason = f": {self._error_text(response)}" if generation else ""
            raise GenerationFailed(f"{self._what} answered {response.status_code}{reason}")
        try:
            data = response.json()
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            raise GenerationFailed(f"{self._what} answered with something other than a JSON object")
        return data

    def close(self) -> None:
        self._pool.close()

    def _send(self, method: str, path: str, body: dict[str, Any] | None, timeout_s: float) -> Response:
        try:
            content = None if body is None else _json_content(body)
        except UnicodeEncodeError as error:
            raise GenerationFailed(f"the prompt contains a character that can't be sent: {error}") from error
        for pause in (*PAUSES_S, None):
            try:
                response = self._pool.request(method, path, content, max_bytes=_MAX_BYTES, timeout_s=timeout_s)
            except ConnectTimeout as error:
                raise self._unreachable(error) from error
            except ResponseTimeout as error:
                advice = "; TIPBENCH_ENGINE_TIMEOUT sets the limit" if timeout_s == self._timeout_s else ""
                raise GenerationFailed(f"{self._what} did not answer within {timeout_s:g} s{advice}") from error
            except NotConnected as error:
                if pause is None or not self._has_answered:
                    raise self._unreachable(error) from error
            except InvalidAddress as error:
                raise self._no_address() from error
            except UnusableContent as error:
                raise GenerationFailed(f"{self._what} {error}") from error
            except HttpError as error:  # connection cut off, or invalid HTTP
                if pause is None:
                    raise GenerationFailed(f"{self._what} closed the connection: {error}") from error
            else:
                self._has_answered = True
                if body and response.status_code in (429, 503):
                    raise EngineBusy(f"{self._what} is busy ({response.status_code})", _retry_after(response))
                if response.status_code < 500 or pause is None:
                    return response
            self._sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _error_text(self, response: Response) -> str:
        return error_text(response, hidden=self._key)

    def _unreachable(self, error: Exception) -> EngineUnreachable:
        return EngineUnreachable(f"{self._what} can't be reached ({error}); {self._advice}")

    def _no_address(self) -> EngineUnreachable:
        return EngineUnreachable(f"{self._what} can't be reached: the address is not valid; {self._advice}")


def _json_content(body: dict[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _retry_after(response: Response) -> float | None:
    """Return the seconds that the server asks us to wait; a date in the header is ignored."""
    try:
        seconds = float(response.headers.get("Retry-After", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds < 86_400 else None


def short_text(value: Any) -> str | None:
    """Return a name that a server reported, made safe for a store; None if it is not a non-empty string."""
    return printable(value, _MAX_NAME_LENGTH) if value and isinstance(value, str) else None


def whole_number(value: Any) -> int | None:
    """Return a count that a server reported; None if it is not a valid number."""
    number = amount(value)
    return None if number is None else int(number)


def amount(value: Any) -> float | None:
    """Return a non-negative number that a server reported, else None; JSON lets NaN and infinity through."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**63:
        return None
    return value


def mapping(value: Any) -> dict[str, Any]:
    """Return a JSON object that a server reported; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def error_text(response: Response, hidden: str = "") -> str:
    """Return the error that an engine's server reports, shortened, without `hidden`: some servers repeat the API key.

    A body of any other shape is not repeated, because it may come from another service.
    """
    try:
        message = response.json()["error"]
        if isinstance(message, dict):
            message = message["message"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "it does not say what was wrong"
    text = str(message).replace(hidden, "…") if hidden else str(message)
    return printable(text, 300) or "it does not say what was wrong"


# Concurrency control: how many requests an engine gets at once, and retries when it is busy.


class Throttle:
    """Limits concurrent requests: halves the limit after each "busy", raises it by one after a round without any."""

    def __init__(self, max_limit: int, sleep: Callable[[float], None] = time.sleep) -> None:
        self.limit = max_limit
        self._max_limit = max_limit
        self._sleep = sleep
        self._running = 0
        self._accepted = 0
        self._changed = threading.Condition()

    def run(self, work: Callable[[], _Result]) -> _Result:
        """Run the work once a slot is free; retry while the engine is busy, after the pause that it asks for."""
        for attempt in range(_MAX_TRIES):
            self._enter()
            try:
                result = work()
            except EngineBusy as busy:
                self._leave(accepted=False)
                self._sleep(min(busy.retry_after_s or 0.5 * 2**attempt, _MAX_PAUSE_S))
            except BaseException:
                self._leave(accepted=True)
                raise
            else:
                self._leave(accepted=True)
                return result
        raise GenerationFailed(f"the engine was busy {_MAX_TRIES} times in a row")

    def _enter(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._running < self.limit)
            self._running += 1

    def _leave(self, accepted: bool) -> None:
        with self._changed:
            self._running -= 1
            if not accepted:
                self.limit, self._accepted = max(1, self.limit // 2), 0
            else:
                self._accepted += 1
                if self._accepted >= self.limit and self.limit < self._max_limit:
                    self.limit, self._accepted = self.limit + 1, 0
            self._changed.notify_all()
