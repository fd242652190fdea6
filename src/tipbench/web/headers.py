"""Headers that tell a browser to trust nothing but what this server itself serves."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tipbench.web.paths import PathRules, covered, longest_match

STRICT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


class SecurityHeaders:
    """Middleware, outside of all that answers."""

    def __init__(self, app: ASGIApp, rules: PathRules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._add(MutableHeaders(scope=message), scope["path"], scope["scheme"])
            await send(message)

        await self._app(scope, receive, with_headers)

    def _add(self, headers: MutableHeaders, path: str, scheme: str) -> None:
        headers.update(_ALWAYS)
        looser = longest_match(path, tuple(self._rules.policies))
        # Added to what the answer has: of two policies, a browser keeps to both.
        headers.append("Content-Security-Policy", self._rules.policies[looser] if looser else STRICT_POLICY)
        if not covered(path, self._rules.static):
            headers["Cache-Control"] = "no-store"
        else:
            headers.setdefault("Cache-Control", "no-cache")  # kept, and asked for again whether it is still the same
        if scheme == "https":
            headers["Strict-Transport-Security"] = "max-age=31536000"
