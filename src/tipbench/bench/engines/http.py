"""HTTP for engines: bounded retries on connection errors and 5xx, and foreign errors translated in one place."""

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import httpx

from tipbench.core.errors import EngineBusy, EngineUnreachable, GenerationFailed, InvalidInput
from tipbench.core.http import UnusableAnswer, fetch, open_client
from tipbench.core.untrusted import printable, without_credentials

PAUSES_S = (0.5, 2.0)  # before the second and the third try
_QUICK_TIMEOUT_S = 15.0  # for everything that is no generation
_MOST_BYTES = 8_000_000  # of one answer
_LONGEST_NAME = 200
_Result = TypeVar("_Result")
_MOST_TRIES = 10
_LONGEST_PAUSE_S = 60.0


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
        self._was_there = False  # who never answered is told at once; who did may be starting again
        headers = {"Authorization": f"Bearer {key}"} if key else None
        if not (key.isascii() and key.isprintable()):  # the HTTP library would repeat it in its error
            raise InvalidInput(f"the key for {self._what} has characters that no key has, like a line break")
        try:
            self._client = open_client(base_url=url, headers=headers)
        except httpx.InvalidURL as error:
            raise self._no_address() from error

    def get(self, path: str) -> httpx.Response:
        return self._send("GET", path, None, _QUICK_TIMEOUT_S)

    def post(self, path: str, body: dict[str, Any], *, generation: bool = False) -> httpx.Response:
        return self._send("POST", path, body, self._timeout_s if generation else _QUICK_TIMEOUT_S)

    def json(self, response: httpx.Response, *, generation: bool = False) -> dict[str, Any]:
        """The response's JSON object; an error status or anything else is a failed generation.

        Only what a generation's error says is repeated: other requests may have been sent to an address that was meant
        to make us read it aloud.
        """
        if response.has_redirect_location:
            raise GenerationFailed(
                f"{self._what} sends us elsewhere ({response.status_code}); give the address where it answers itself"
            )
        if response.status_code >= 400:
            said = f": {self._said(response)}" if generation else ""
            raise GenerationFailed(f"{self._what} answered {response.status_code}{said}")
        try:
            data = response.json()
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            raise GenerationFailed(f"{self._what} answered something that is no JSON object")
        return data

    def close(self) -> None:
        self._client.close()

    def _send(self, method: str, path: str, body: dict[str, Any] | None, timeout_s: float) -> httpx.Response:
        timeout = httpx.Timeout(timeout_s, connect=min(timeout_s, 10.0))
        for pause in (*PAUSES_S, None):
            try:
                response = fetch(
                    self._client, method, path, most_bytes=_MOST_BYTES, within_s=timeout_s, json=body, timeout=timeout
                )
            except httpx.TimeoutException as error:
                if isinstance(error, httpx.ConnectTimeout):
                    raise self._unreachable(error) from error
                advice = "; TIPBENCH_ENGINE_TIMEOUT sets the limit" if timeout_s == self._timeout_s else ""
                raise GenerationFailed(f"{self._what} gave no answer within {timeout_s:g} s{advice}") from error
            except httpx.ConnectError as error:
                if pause is None or not self._was_there:
                    raise self._unreachable(error) from error
            except UnicodeEncodeError as error:
                raise GenerationFailed(f"the prompt holds a character that can't be sent: {error}") from error
            except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
                raise self._no_address() from error
            except UnusableAnswer as error:
                raise GenerationFailed(f"{self._what} {error}") from error
            except httpx.RequestError as error:  # cut off, or not HTTP as it should be
                if pause is None:
                    raise GenerationFailed(f"{self._what} broke the connection: {error}") from error
            else:
                self._was_there = True
                if body and response.status_code in (429, 503):
                    raise EngineBusy(f"{self._what} is busy ({response.status_code})", _retry_after(response))
                if response.status_code < 500 or pause is None:
                    return response
            self._sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _said(self, response: httpx.Response) -> str:
        return error_text(response, hidden=self._key)

    def _unreachable(self, error: Exception) -> EngineUnreachable:
        return EngineUnreachable(f"{self._what} can't be reached ({error}); {self._advice}")

    def _no_address(self) -> EngineUnreachable:
        return EngineUnreachable(f"{self._what} can't be reached: the address is not valid; {self._advice}")


def _retry_after(response: httpx.Response) -> float | None:
    """The seconds that the server asks for; a date there is as good as nothing."""
    try:
        seconds = float(response.headers.get("Retry-After", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds < 86_400 else None


def short_text(value: Any) -> str | None:
    """A name as a server told it, fit for a store; what is none is as good as untold."""
    return printable(value, _LONGEST_NAME) if value and isinstance(value, str) else None


def whole_number(value: Any) -> int | None:
    """A count as a server told it; what is no count is as good as untold."""
    told = amount(value)
    return None if told is None else int(told)


def amount(value: Any) -> float | None:
    """A number of something as a server told it; JSON lets NaN and endless numbers through."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**63:
        return None
    return value


def mapping(value: Any) -> dict[str, Any]:
    """A JSON object as a server told it; anything else is as good as an empty one."""
    return value if isinstance(value, dict) else {}


def error_text(response: httpx.Response, hidden: str = "") -> str:
    """The error that an engine's server reports, short; some servers repeat the key that they were given.

    A body of any other shape is not repeated: it may be another service's.
    """
    try:
        message = response.json()["error"]
        if isinstance(message, dict):
            message = message["message"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "it says nothing of what was wrong"
    told = str(message).replace(hidden, "…") if hidden else str(message)
    return printable(told, 300) or "it says nothing of what was wrong"


# How many requests an engine gets at once, and what happens when it says that it is busy.


class Throttle:
    """How many may be on their way: half as many after each "busy", one more after a round without any."""

    def __init__(self, most: int, sleep: Callable[[float], None] = time.sleep) -> None:
        self.limit = most
        self._most = most
        self._sleep = sleep
        self._running = 0
        self._good = 0
        self._changed = threading.Condition()

    def run(self, work: Callable[[], _Result]) -> _Result:
        """Does the work when it is its turn; tries again when the engine was busy, after as long as it asked for."""
        for tried in range(_MOST_TRIES):
            self._enter()
            try:
                result = work()
            except EngineBusy as busy:
                self._leave(good=False)
                self._sleep(min(busy.retry_after_s or 0.5 * 2**tried, _LONGEST_PAUSE_S))
            except BaseException:
                self._leave(good=True)
                raise
            else:
                self._leave(good=True)
                return result
        raise GenerationFailed(f"the engine was busy {_MOST_TRIES} times in a row")

    def _enter(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._running < self.limit)
            self._running += 1

    def _leave(self, good: bool) -> None:
        with self._changed:
            self._running -= 1
            if not good:
                self.limit, self._good = max(1, self.limit // 2), 0
            else:
                self._good += 1
                if self._good >= self.limit and self.limit < self._most:
                    self.limit, self._good = self.limit + 1, 0
            self._changed.notify_all()
