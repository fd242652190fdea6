"""Installs all middleware around an app, in the one order that holds."""

from collections.abc import Callable, Collection

from fastapi import FastAPI

from tipbench.web.authentication import Authentication, Credentials
from tipbench.web.errors import ErrorPage, Errors, Faults, install_errors
from tipbench.web.headers import BodyLimit, SecurityHeaders
from tipbench.web.hosts import AllowedHosts
from tipbench.web.log import AccessLog, is_reading_done
from tipbench.web.paths import PathRules


def protect(
    app: FastAPI,
    credentials: Credentials,
    rules: PathRules,
    page: ErrorPage | None = None,
    hosts: Collection[str] | None = None,
    quiet: Callable[[str, str], bool] = is_reading_done,
) -> Errors:
    """From the outside: log, headers, faults, hosts, authentication, body limit, app; so all answers have log lines.

    `hosts`: the names that the app answers to; None for a service that no browser talks to.
    `quiet`: which requests, by method and status, have no line in the log.
    """
    errors = install_errors(app, page)
    app.add_middleware(BodyLimit, rules=rules, errors=errors)
    app.add_middleware(Authentication, credentials=credentials, rules=rules, errors=errors)
    if hosts is not None:
        app.add_middleware(AllowedHosts, names=hosts, errors=errors)
    app.add_middleware(Faults, errors=errors)
    app.add_middleware(SecurityHeaders, rules=rules)
    app.add_middleware(AccessLog, quiet=quiet)
    return errors
