"""A thin client for Airflow's REST API. Translates its errors into ours, with advice on what to do next."""

import threading
from typing import Any
from urllib.parse import quote

import httpx

from tipbench.core.errors import InvalidInput, NotFound, RunnerError, RunnerRefused, RunnerUnreachable
from tipbench.core.http import UnusableAnswer, fetch, open_client
from tipbench.core.settings import Setting, Settings
from tipbench.core.untrusted import printable, without_credentials

URL = Setting("TIPBENCH_AIRFLOW_URL", "http://localhost:8080", "Address of Airflow's API server.")
USERNAME = Setting("TIPBENCH_AIRFLOW_USERNAME", "", "User name for Airflow.", secret=True)
PASSWORD = Setting("TIPBENCH_AIRFLOW_PASSWORD", "", "Password for Airflow.", secret=True)
TOKEN = Setting("TIPBENCH_AIRFLOW_TOKEN", "", "Bearer token for Airflow, instead of name and password.", secret=True)
TABLE = (URL, USERNAME, PASSWORD, TOKEN)


_API = "/api/v2"
_TIMEOUT = httpx.Timeout(30.0, connect=5.0)
_TOTAL_TIMEOUT_S = 60.0  # for a request and its whole response
_MAX_BYTES = 32_000_000
_MAX_DETAIL_CHARS = 400
_CREDENTIALS = f"{USERNAME.name} and {PASSWORD.name}, or {TOKEN.name}"


class AirflowUnreachable(RunnerUnreachable):
    """Airflow did not answer at its address, or not in time."""


class AirflowRefused(RunnerRefused):
    """Airflow rejected our credentials, or our user lacks a permission."""


class AirflowError(RunnerError):
    """A response that an Airflow should not give."""


class AirflowConflict(InvalidInput):
    """The object exists already, or is in a state that does not allow this."""


class AirflowApi:
    """Airflow's API at the address in the settings. Thread-safe."""

    def __init__(self, settings: Settings, transport: httpx.BaseTransport | None = None) -> None:
        url = settings.value(URL)
        self.address = without_credentials(url)
        if self.address != url.rstrip("/"):
            raise InvalidInput(
                f"{URL.name} contains a user name or password (for {self.address}), which every link would show; "
                f"leave them out and set {_CREDENTIALS}"
            )
        self._user = (settings.value(USERNAME), settings.value(PASSWORD))
        self._has_fixed_token = bool(settings.value(TOKEN))
        self._bearer = _check_sendable(TOKEN, settings.value(TOKEN))
        self._login_lock = threading.Lock()
        try:
            self._http = open_client(base_url=self.address, timeout=_TIMEOUT, transport=transport)
        except (httpx.InvalidURL, ValueError) as error:
            raise self._invalid_address() from error

    def get(self, path: str, **params: Any) -> dict[str, Any]:
        """Get a path below /api/v2; names in the path must be quoted with `path_segment`."""
        return self._json(self._send("GET", path, params=params))

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._json(self._send("POST", path, json=body))

    def patch(self, path: str, body: dict[str, Any], **params: Any) -> dict[str, Any]:
        return self._json(self._send("PATCH", path, json=body, params=params))

    def close(self) -> None:
        self._http.close()

    def _send(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        """Send a request. Tokens are valid for a day or less, so log in again once if Airflow rejects ours."""
        bearer = self._bearer or self._log_in("")
        response = self._request(method, f"{_API}{path}", bearer, **arguments)
        if response.status_code == 401 and not self._has_fixed_token:
            response = self._request(method, f"{_API}{path}", self._log_in(bearer), **arguments)
        return response

    def _log_in(self, expired: str) -> str:
        """Return a new token; if another thread has replaced the expired one already, return that thread's."""
        with self._login_lock:
            if self._bearer != expired:
                return self._bearer
            if not all(self._user):
                raise AirflowRefused(f"Airflow at {self.address} requires authentication; set {_CREDENTIALS}")
            username, password = self._user
            response = self._request("POST", "/auth/token", "", json={"username": username, "password": password})
            if response.status_code in (401, 403, 422):
                raise AirflowRefused(
                    f"Airflow at {self.address} rejects the user name and password; check {USERNAME.name} and "
                    f"{PASSWORD.name}"
                )
            if response.status_code in (404, 405):
                raise AirflowRefused(
                    f"the server at {self.address} issues no tokens for user names ({response.status_code}); check "
                    f"{URL.name}, or set {TOKEN.name} if this Airflow's users log in elsewhere"
                )
            token = self._json(response).get("access_token")
            if not isinstance(token, str) or not (token.isascii() and token.isprintable()):
                raise self._not_airflow()
            self._bearer = token
            return token

    def _request(self, method: str, path: str, bearer: str, **arguments: Any) -> httpx.Response:
        headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {bearer}"} if bearer else {})
        try:
            return fetch(
                self._http,
                method,
                path,
                max_bytes=_MAX_BYTES,
                total_timeout_s=_TOTAL_TIMEOUT_S,
                headers=headers,
                **arguments,
            )
        except httpx.UnsupportedProtocol as error:
            raise self._invalid_address() from error
        except UnusableAnswer as error:
            raise AirflowError(
                f"the server at {self.address} is not an Airflow 3: it {error}; check {URL.name}"
            ) from error
        except httpx.TimeoutException as error:
            raise AirflowUnreachable(
                f"Airflow at {self.address} did not answer in time; is its API server running, and is {URL.name} right?"
            ) from error
        except httpx.RequestError as error:
            why = printable(str(error), 200) or type(error).__name__
            raise AirflowUnreachable(
                f"Airflow at {self.address} can't be reached ({why}); start its API server, or set {URL.name}"
            ) from error
        except (httpx.InvalidURL, UnicodeError) as error:
            raise self._invalid_address() from error

    def _json(self, response: httpx.Response) -> dict[str, Any]:
        self._check_status(response)
        try:
            data = response.json()
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            raise self._not_airflow()
        return data

    def _check_status(self, response: httpx.Response) -> None:
        """Raise the error that fits the response's status, if it is one."""
        status = response.status_code
        if status < 300:
            return
        if status < 400:
            raise AirflowError(
                f"{self.address} redirects to another address ({status}); set {URL.name} to Airflow's own address"
            )
        if status == 401:
            names = TOKEN.name if self._has_fixed_token else f"{USERNAME.name} and {PASSWORD.name}"
            raise AirflowRefused(f"Airflow at {self.address} rejects the credentials ({status}); check {names}")
        if status == 403:
            raise AirflowRefused(
                f"Airflow at {self.address} does not allow this user to do this ({status}); give the user in "
                f"{TOKEN.name if self._has_fixed_token else USERNAME.name} the permission, or use another user"
            )
        if status in (502, 503, 504):
            raise AirflowUnreachable(f"Airflow at {self.address} is temporarily unavailable ({status}); try again soon")
        detail = _detail(response)
        if detail is None:
            raise AirflowError(
                f"{self.address} answered {status}, which is not an answer from Airflow; does {URL.name} name "
                f"Airflow's API server? It said: {printable(response.text[:2_000], 200)!r}"
            )
        kinds: dict[int, type[Exception]] = {400: InvalidInput, 404: NotFound, 409: AirflowConflict, 422: InvalidInput}
        raise kinds.get(status, AirflowError)(f"Airflow at {self.address} refused ({status}): {detail}")

    def _not_airflow(self) -> AirflowError:
        return AirflowError(f"the server at {self.address} is not an Airflow 3; check {URL.name}")

    def _invalid_address(self) -> AirflowUnreachable:
        return AirflowUnreachable(
            f"{printable(self.address, 200)!r} is not the address of an Airflow; set {URL.name} to one such as "
            f"{URL.default}"
        )


def path_segment(name: str) -> str:
    """Quote an untrusted name as a single segment of a path; raise NotFound for a name that would change the path."""
    if name in ("", ".", "..") or "/" in name:
        raise NotFound(f"Airflow has nothing named {printable(name, 60)!r}")
    return quote(name.encode("utf-8", "replace"), safe="")


def _check_sendable(setting: Setting, value: str) -> str:
    if not (value.isascii() and value.isprintable()):  # the HTTP library's error would contain the secret
        raise InvalidInput(f"{setting.name} contains characters that can't be sent, such as a line break")
    return value


def _detail(response: httpx.Response) -> str | None:
    """Return Airflow's own error message, shortened; None if the response has none in Airflow's format."""
    try:
        detail = response.json()["detail"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if isinstance(detail, list):  # validation errors
        detail = "; ".join(_problem(one) for one in detail[:5])
    elif isinstance(detail, dict):
        detail = detail.get("reason") or detail.get("message") or detail
    return printable(str(detail), _MAX_DETAIL_CHARS)


def _problem(one: Any) -> str:
    """Describe a validation error without the value that was sent, which FastAPI includes."""
    if not isinstance(one, dict):
        return str(one)
    return f"{'.'.join(str(part) for part in one.get('loc', ()))}: {one.get('msg', '')}"
