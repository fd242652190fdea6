"""HTTP for engines: bounded retries on connection errors and 5xx, and foreign errors translated in one place."""

import time
from collections.abc import Callable
from typing import Any

import httpx

from tipbench.errors import EngineUnreachable, GenerationFailed
from tipbench.untrusted import printable

PAUSES_S = (0.5, 2.0)  # before the second and the third try
_QUICK_TIMEOUT_S = 15.0  # for everything that is no generation


class EngineHttp:
    """A client for one engine's base URL."""

    def __init__(
        self,
        url: str,
        what: str,
        advice: str,
        timeout_s: float,
        headers: dict[str, str] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._what = f"{what} at {url}"
        self._advice = advice
        self._timeout_s = timeout_s
        self._sleep = sleep
        self._client = httpx.Client(base_url=url, headers=headers, timeout=_QUICK_TIMEOUT_S)

    def get(self, path: str) -> httpx.Response:
        return self._send("GET", path, None, _QUICK_TIMEOUT_S)

    def post(self, path: str, body: dict[str, Any], *, generation: bool = False) -> httpx.Response:
        return self._send("POST", path, body, self._timeout_s if generation else _QUICK_TIMEOUT_S)

    def json(self, response: httpx.Response) -> dict[str, Any]:
        """The response's JSON object; an error status or anything else is a failed generation."""
        if response.status_code >= 400:
            raise GenerationFailed(f"{self._what} answered {response.status_code}: {error_text(response)}")
        try:
            data = response.json()
        except ValueError:
            data = None
        if not isinstance(data, dict):
            raise GenerationFailed(f"{self._what} answered something that is no JSON object: {error_text(response)}")
        return data

    def close(self) -> None:
        self._client.close()

    def _send(self, method: str, path: str, body: dict[str, Any] | None, timeout_s: float) -> httpx.Response:
        timeout = httpx.Timeout(timeout_s, connect=min(timeout_s, 10.0))
        for pause in (*PAUSES_S, None):
            try:
                response = self._client.request(method, path, json=body, timeout=timeout)
            except httpx.TimeoutException as error:
                if isinstance(error, httpx.ConnectTimeout):
                    raise self._unreachable(error) from error
                raise GenerationFailed(
                    f"{self._what} gave no answer within {timeout_s:g} s; TIPBENCH_ENGINE_TIMEOUT sets the limit"
                ) from error
            except httpx.ConnectError as error:
                if pause is None:
                    raise self._unreachable(error) from error
            except httpx.TransportError as error:
                if pause is None:
                    raise GenerationFailed(f"{self._what} broke the connection: {error}") from error
            except (httpx.InvalidURL, UnicodeError) as error:
                raise EngineUnreachable(f"{self._what} can't be reached: the address is not valid ({error})") from error
            else:
                if response.status_code < 500 or pause is None:
                    return response
            self._sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _unreachable(self, error: Exception) -> EngineUnreachable:
        return EngineUnreachable(f"{self._what} can't be reached ({error}); {self._advice}")


def error_text(response: httpx.Response) -> str:
    """What the server said was wrong, short."""
    try:
        data = response.json()
        message = data["error"]
        if isinstance(message, dict):
            message = message["message"]
    except (ValueError, KeyError, TypeError):
        message = response.text
    return printable(str(message), 300)
