"""The table that says who may go where. What is not in it is for admins alone, so a forgotten route is a closed one."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.types import Scope

LOGIN = "/login"
LOGOUT = "/logout"
API = "/api/*"
_LONGEST_NEXT = 2000
_UNSAFE_IN_PATHS = re.compile("[\x00-\x1f\x7f\\\\\ufffd]")


@dataclass(frozen=True)
class PathRules:
    """Lists of paths; `/x` stands for itself, `/x/*` for itself and all below, `/x/*/y` for any one name in between."""

    open: Sequence[str] = ()  # for everybody: health, the login page's static files, what authenticates by itself
    judges: Sequence[str] = ()  # for judges, too
    forms: Sequence[str] = ()  # plain forms: their handlers check the field `csrf` by the dependency `csrf_form`
    foreign: Sequence[str] = ()  # pages that are not ours and can't send our token: checked by origin alone
    static: Sequence[str] = ()  # files that a browser may keep
    policies: Mapping[str, str] = field(default_factory=dict)  # looser Content-Security-Policies
    body_limits: Mapping[str, int] = field(default_factory=dict)  # bytes, where it is not the usual limit

    def is_open(self, path: str) -> bool:
        return covered(path, self.open)

    def is_for_judges(self, path: str) -> bool:
        return covered(path, self.judges)

    def is_form(self, path: str) -> bool:
        return covered(path, self.forms)


def covered(path: str, patterns: Sequence[str]) -> bool:
    return any(covers(pattern, path) for pattern in patterns)


def covers(pattern: str, path: str) -> bool:
    """Letter for letter and segment by segment, as the router does: /API is not /api, and /apis is not below it."""
    named, given = pattern.removesuffix("/*").split("/"), path.split("/")
    fits = len(given) == len(named) or (pattern.endswith("/*") and len(given) > len(named))
    return fits and all(name in ("*", segment) for name, segment in zip(named, given, strict=False))


def longest_match(path: str, patterns: Sequence[str]) -> str | None:
    """The pattern that says the most about this path."""
    return max((pattern for pattern in patterns if covers(pattern, path)), key=len, default=None)


def is_plain(scope: Scope) -> bool:
    """Whether a path means the same to the table, the router and whatever stands behind it.

    The table reads the decoded path, as the router does. What others might read in another way is refused: dot segments
    and doubled slashes, which some resolve, control characters, backslashes, bytes that are no UTF-8.
    """
    path: str = scope["path"]
    raw: bytes = scope.get("raw_path") or path.encode("utf-8", "replace")
    return (
        path.startswith("/")
        and not path.startswith("//")
        and b"//" not in raw
        and not _UNSAFE_IN_PATHS.search(path)
        and not any(segment in (".", "..") for segment in path.split("/"))
        and not scope.get("root_path")  # it would be taken off before routing, and rules would be about another path
    )


def local_path(wanted: str) -> str:
    """Where to go after signing in: a path of this server, whatever was asked for; else the front page."""
    if (
        not wanted.startswith("/")
        or wanted.startswith("//")
        or len(wanted) > _LONGEST_NEXT
        or not re.fullmatch(
            r"[!-\[\]-~]+", wanted
        )  # visible ASCII without the backslash, which browsers take for a slash
        or urlsplit(wanted).path in (LOGIN, LOGOUT)
    ):
        return "/"
    return wanted
