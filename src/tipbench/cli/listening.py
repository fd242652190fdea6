"""Listening sockets of our servers, and who can reach them."""

import errno
import ipaddress
import socket
from typing import Any

from tipbench.core.errors import InvalidInput
from tipbench.core.settings import Settings
from tipbench.core.untrusted import shown

LOOPBACK = "127.0.0.1"
GRACE_S = 3  # for requests in flight when a server ends


def open_listener(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise InvalidInput if the address can't be used.

    Call this before anything else: an address in use is then reported before anything was changed.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # IPPROTO_TCP is explicit, or asyncio leaves Nagle's algorithm on, and a response in two writes takes 40 ms
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise InvalidInput(
            f"can't listen on {host}:{port} ({error.strerror or error}); "
            + (
                "use another --port, or stop what is using it"
                if error.errno == errno.EADDRINUSE
                else "use another --host or --port"
            )
        ) from None
    return listener


def url_of(host: str, listener: socket.socket) -> str:
    bracketed = f"[{host}]" if ":" in host else host
    return f"http://{bracketed}:{listener.getsockname()[1]}"


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def trusted_proxies(settings: Settings) -> list[str]:
    """Return the addresses and networks whose X-Forwarded-For and -Proto are trusted; raise InvalidInput for others."""
    named = [part.strip() for part in settings.get("TIPBENCH_TRUSTED_PROXIES").split(",") if part.strip()]
    for one in named:
        try:
            ipaddress.ip_network(one)
        except ValueError:
            raise InvalidInput(
                f"TIPBENCH_TRUSTED_PROXIES names {shown(one)}, which is not an address or network; "
                "give for example 127.0.0.1 or 10.0.0.0/8, comma-separated"
            ) from None
    return named


def uvicorn_options(behind_proxy: bool) -> dict[str, Any]:
    """Return the uvicorn options of our servers: no access log, no server header, only configured proxies trusted."""
    from tipbench.web.log import log_config
    from tipbench.web.server import guard_options

    settings = Settings()
    return {
        **guard_options(),
        "log_config": log_config(settings.log_format),
        "access_log": False,
        "server_header": False,
        "timeout_graceful_shutdown": GRACE_S,
        "proxy_headers": behind_proxy,
        "forwarded_allow_ips": trusted_proxies(settings) if behind_proxy else [],
    }
