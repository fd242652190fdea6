"""Installs all middleware of an app, in the order in which it works together."""

from collections.abc import Collection

from fastapi import FastAPI

from tipbench.web.authentication import Authentication, Credentials
from tipbench.web.errors import ErrorPage, Errors, UnhandledErrors, install_errors
from tipbench.web.headers import BodyLimit, SecurityHeaders
from tipbench.web.hosts import AllowedHosts
from tipbench.web.log import AccessLog, is_successful, is_successful_read
from tipbench.web.metrics import Metrics
from tipbench.web.paths import PathRules


def install_middleware(
    app: FastAPI,
    credentials: Credentials,
    rules: PathRules,
    metrics: Metrics,
    page: ErrorPage | None = None,
    hosts: Collection[str] | None = None,
) -> Errors:
    """Install the error handlers and all middleware; return the error responses.

    From the outside in: access log, headers, unhandled errors, hosts, authentication, body limit, app. So every
    response is logged and counted.

    `hosts`: the host names that the app answers to; None for a service that browsers don't use.
    """
    errors = install_errors(app, page, metrics)
    app.add_middleware(BodyLimit, rules=rules, errors=errors)
    app.add_middleware(Authentication, credentials=credentials, rules=rules, errors=errors)
    if hosts is not None:
        app.add_middleware(AllowedHosts, names=hosts, errors=errors)
    app.add_middleware(UnhandledErrors, errors=errors)
    app.add_middleware(SecurityHeaders, rules=rules)
    # Programs send many requests a second, so of a service without sessions only what fails is logged.
    quiet = is_successful_read if credentials.sessions else is_successful
    app.add_middleware(AccessLog, metrics=metrics, quiet=quiet)
    return errors
