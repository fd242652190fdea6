"""Whether a request comes from one of our own pages, by what browsers say and scripts in them can't change."""

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))


def is_same_origin(scope: Scope) -> bool:
    """By Sec-Fetch-Site, which proxies leave alone; else by Origin. A request with neither is no browser's."""
    headers = Headers(scope=scope)
    site = headers.getlist("sec-fetch-site")
    if site:
        return site == ["same-origin"]
    origin = headers.getlist("origin")
    return len(origin) == 1 and _names_host(origin[0], headers.get("host", ""), scope["scheme"])


def _names_host(origin: str, host: str, scheme: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    schemes = ("https",) if scheme == "https" else ("http", "https")  # https may end at a proxy in front of us
    return parts.scheme in schemes and bool(host) and parts.netloc.lower() == host.lower()
