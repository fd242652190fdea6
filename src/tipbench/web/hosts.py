"""The host names this server answers to: protection against DNS rebinding, where another site's name points here."""

import ipaddress
from abc import ABC, abstractmethod
from collections.abc import Collection

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tipbench.core.errors import InvalidInput
from tipbench.core.untrusted import shown
from tipbench.web.errors import Errors


class Guard(ABC):
    """Middleware that runs before the router and either refuses a request or passes it on. Refuses all WebSockets."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008, "reason": ""})  # no WebSockets here
        else:
            refusal = self._refusal(Request(scope))
            await (refusal or self._app)(scope, receive, send)

    @abstractmethod
    def _refusal(self, request: Request) -> Response | None:
        """Return the response that refuses the request, or None to pass it on."""
        ...


class AllowedHosts(Guard):
    """Middleware that refuses requests for hosts other than localhost, IP addresses and the allowed names."""

    def __init__(self, app: ASGIApp, names: Collection[str], errors: Errors) -> None:
        super().__init__(app)
        self._names = {"localhost", *(_host_name(name) for name in names)}
        self._errors = errors

    def _refusal(self, request: Request) -> Response | None:
        given = request.headers.getlist("host")
        if not given:  # HTTP/1.0, which browsers don't use
            return None
        name = _host_name(given[0]) if len(given) == 1 else ""
        if name in self._names or _is_address(name):
            return None
        message = (
            f"this server does not answer to the host name {shown(name)}; whoever runs it can add the name to "
            "TIPBENCH_ALLOWED_HOSTS"
        )
        return self._errors.answer(request, 400, message)


def allowed_hosts(setting: str) -> list[str]:
    """Parse TIPBENCH_ALLOWED_HOSTS; raise InvalidInput for anything that is not a host name."""
    names = [part.strip() for part in setting.split(",") if part.strip()]
    for name in names:
        if not name.isascii() or any(letter in name for letter in "/:@*[] "):
            raise InvalidInput(
                f"TIPBENCH_ALLOWED_HOSTS names {shown(name)}, which is not a host name; give names without scheme and "
                "port, such as bench.example.com, comma-separated"
            )
    return names


def _host_name(host: str) -> str:
    """Return the name in a Host header, in lower case and without the port."""
    name = host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]
    return name.lower().removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
