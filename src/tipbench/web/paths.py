"""The table of paths: who may access what. Any other path is for admins only, so a forgotten route is closed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.types import Scope

LOGIN = "/login"
LOGOUT = "/logout"
API = "/api/*"
MCP = "/mcp"
PROGRAMS = (API, MCP)  # paths that programs use with a token; a browser is never sent to the login page from here
_MAX_NEXT_CHARS = 2000
_UNSAFE_IN_PATHS = re.compile("[\x00-\x1f\x7f\\\\\ufffd]")


@dataclass(frozen=True)
class PathRules:
    """Lists of path patterns: `/x` matches itself, `/x/*` itself and all below, `/x/*/y` any one segment in between."""

    open: Sequence[str] = ()  # no authentication: health, the login page's static files, what authenticates by itself
    judges: Sequence[str] = ()  # for judges as well as admins
    metrics: Sequence[str] = ()  # what the metrics token may GET; it opens nothing else
    forms: Sequence[str] = ()  # plain HTML forms; their handlers check the field `csrf` with the dependency `csrf_form`
    foreign: Sequence[str] = ()  # third-party pages, which can't send our CSRF token; only their origin is checked
    static: Sequence[str] = ()  # files that a browser may cache
    policies: Mapping[str, str] = field(default_factory=dict)  # Content-Security-Policies other than the strict default
    body_limits: Mapping[str, int] = field(default_factory=dict)  # bytes, where the default limit does not apply

    def is_open(self, path: str) -> bool:
        return matches_any(path, self.open)

    def is_for_judges(self, path: str) -> bool:
        return matches_any(path, self.judges)

    def is_for_metrics(self, method: str, path: str) -> bool:
        return method == "GET" and matches_any(path, self.metrics)

    def is_form(self, path: str) -> bool:
        return matches_any(path, self.forms)


def matches_any(path: str, patterns: Sequence[str]) -> bool:
    return any(matches(pattern, path) for pattern in patterns)


def matches(pattern: str, path: str) -> bool:
    """Match case-sensitively and segment by segment, as the router does: `/api/*` matches neither /API nor /apis."""
    expected, actual = pattern.removesuffix("/*").split("/"), path.split("/")
    fits = len(actual) == len(expected) or (pattern.endswith("/*") and len(actual) > len(expected))
    return fits and all(name in ("*", segment) for name, segment in zip(expected, actual, strict=False))


def longest_match(path: str, patterns: Sequence[str]) -> str | None:
    """Return the longest pattern that matches the path, or None."""
    return max((pattern for pattern in patterns if matches(pattern, path)), key=len, default=None)


def is_unambiguous(scope: Scope) -> bool:
    """Return whether the path means the same to this table, to the router and to whatever is behind it.

    The table matches the decoded path, as the router does. Anything that others might interpret differently is
    ambiguous: dot segments and double slashes, which some resolve, control characters, backslashes, invalid UTF-8.
    """
    path: str = scope["path"]
    raw: bytes = scope.get("raw_path") or path.encode("utf-8", "replace")
    return (
        path.startswith("/")
        and not path.startswith("//")
        and b"//" not in raw
        and not _UNSAFE_IN_PATHS.search(path)
        and not any(segment in (".", "..") for segment in path.split("/"))
        and not scope.get(
            "root_path"
        )  # it is stripped before routing, so the rules would see another path than the router
    )


def local_path(wanted: str) -> str:
    """Return `wanted` if it is a safe redirect target on this server after signing in; else the front page."""
    if (
        not wanted.startswith("/")
        or wanted.startswith("//")
        or len(wanted) > _MAX_NEXT_CHARS
        or not re.fullmatch(
            r"[!-\[\]-~]+", wanted
        )  # visible ASCII without the backslash, which browsers treat as a slash
        or urlsplit(wanted).path in (LOGIN, LOGOUT)
    ):
        return "/"
    return wanted
