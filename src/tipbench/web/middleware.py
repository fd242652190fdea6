"""Installs all middleware of an app, in the order in which it works together."""

from collections.abc import Callable, Collection

from fastapi import FastAPI

from tipbench.web.authentication import Authentication, Credentials
from tipbench.web.errors import ErrorPage, Errors, UnhandledErrors, install_errors
from tipbench.web.headers import BodyLimit, SecurityHeaders
from tipbench.web.hosts import AllowedHosts
from tipbench.web.log import AccessLog, is_successful_read
from tipbench.web.paths import PathRules


def install_middleware(
    app: FastAPI,
    credentials: Credentials,
    rules: PathRules,
    page: ErrorPage | None = None,
    hosts: Collection[str] | None = None,
    quiet: Callable[[str, str], bool] = is_successful_read,
) -> Errors:
    """Install the error handlers and all middleware; return the error responses.

    From the outside in: access log, headers, unhandled errors, hosts, authentication, body limit, app. So every
    response is logged.

    `hosts`: the host names that the app answers to; None for a service that browsers don't use.
    `quiet`: which requests, by method and status, are logged at DEBUG only.
    """
    errors = install_errors(app, page)
    app.add_middleware(BodyLimit, rules=rules, errors=errors)
    app.add_middleware(Authentication, credentials=credentials, rules=rules, errors=errors)
    if hosts is not None:
        app.add_middleware(AllowedHosts, names=hosts, errors=errors)
    app.add_middleware(UnhandledErrors, errors=errors)
    app.add_middleware(SecurityHeaders, rules=rules)
    app.add_middleware(AccessLog, quiet=quiet)
    return errors
