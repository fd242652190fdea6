"""Puts all of it around an app, in the one order that holds."""

from collections.abc import Collection

from fastapi import FastAPI

from tipbench.web.authentication import Access, Gate
from tipbench.web.errors import ErrorPage, Faults, install_errors
from tipbench.web.headers import BodyLimit, SecurityHeaders
from tipbench.web.hosts import AllowedHosts
from tipbench.web.log import AccessLog
from tipbench.web.paths import PathRules


def protect(
    app: FastAPI, access: Access, rules: PathRules, page: ErrorPage | None = None, hosts: Collection[str] = ()
) -> None:
    """From the outside: log, headers, faults, hosts, gate, body limit, app; so every answer has a line and headers."""
    errors = install_errors(app, page)
    app.add_middleware(BodyLimit, rules=rules, errors=errors)
    app.add_middleware(Gate, access=access, rules=rules, errors=errors)
    app.add_middleware(AllowedHosts, names=hosts, errors=errors)
    app.add_middleware(Faults, errors=errors)
    app.add_middleware(SecurityHeaders, rules=rules)
    app.add_middleware(AccessLog)
