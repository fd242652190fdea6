"""Puts all of it around a service with one key, in the order that `protection.py` has for the others."""

from fastapi import FastAPI

from tipbench.web.attempts import Attempts
from tipbench.web.bodies import BodyLimit
from tipbench.web.errors import Faults, install_errors
from tipbench.web.headers import SecurityHeaders
from tipbench.web.key import ServiceKey
from tipbench.web.key_gate import KeyGate
from tipbench.web.log import AccessLog, is_done
from tipbench.web.paths import PathRules


def protect_by_key(app: FastAPI, key: ServiceKey, attempts: Attempts, rules: PathRules) -> None:
    """Programs ask it many times a second, so what went well has no line in the log."""
    errors = install_errors(app)
    app.add_exception_handler(OSError, errors.of_storage)
    app.add_middleware(BodyLimit, rules=rules, errors=errors)
    app.add_middleware(KeyGate, key=key, attempts=attempts, rules=rules, errors=errors)
    app.add_middleware(Faults, errors=errors)
    app.add_middleware(SecurityHeaders, rules=rules)
    app.add_middleware(AccessLog, quiet=is_done)
