"""Assembles the recommender's service."""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import NamedTuple

from fastapi import FastAPI

from tipbench.core.files import private_folder
from tipbench.core.paths import recommender_folder
from tipbench.core.settings import Settings
from tipbench.core.version import __version__
from tipbench.recommender.log.decisions import DecisionLog
from tipbench.recommender.policies.catalog import SERVED
from tipbench.recommender.promotion.evidence import changed_since
from tipbench.recommender.promotion.live import LivePolicy
from tipbench.recommender.recommender import Recommender
from tipbench.recommender.service.answers import Parts
from tipbench.recommender.service.routers import add_routes
from tipbench.recommender.shadows.runner import check_names, open_shadows
from tipbench.recommender.store.moving import check_not_left_behind, open_store
from tipbench.web.attempts import Attempts
from tipbench.web.authentication import KeyAccess
from tipbench.web.errors import JsonAnswer, error_responses
from tipbench.web.log import is_done
from tipbench.web.middleware import protect
from tipbench.web.paths import PathRules
from tipbench.web.service_key import ServiceKey

RULES = PathRules(open=("/health",))
_KEY = "TIPBENCH_SERVING_KEY"
_API = (
    "Everything but /health wants 'Authorization: Bearer KEY'. Errors have one shape: "
    '{"error": {"code", "message", "problems"}}.'
)
_ERRORS = error_responses(
    {
        400: "The request can't be read.",
        401: "No key, or not a valid one.",
        404: "There is no such thing.",
        409: "The event was told otherwise before, or the state is of other features.",
        413: "The body is too large.",
        422: "The request can't be carried out; `problems` lists everything that is wrong with it.",
        429: "Too many failed attempts.",
        500: "Something went wrong; the server's log has it.",
        503: "States can't be read or written right now.",
    }
)


def folder_of(settings: Settings) -> Path:
    """Where the recommender keeps everything; nobody else may look into it."""
    return private_folder(recommender_folder(settings.home))


def service_key(settings: Settings) -> ServiceKey:
    return ServiceKey(folder_of(settings) / "key", _KEY, settings.get(_KEY))


class Checked(NamedTuple):
    """What whoever starts the service wants to know of it."""

    made_of: str  # in a line
    changes: list[str]  # of the live policy since it was promoted, as by an update of tipbench


def checked_parts(settings: Settings, shadows: Sequence[str]) -> Checked:
    """Refuses settings and names of which no service could be made."""
    _ = settings.reward_window_s  # raises for what is no time
    on = wanted_shadows(settings, shadows)
    check_names(on)
    with closing(open_store(settings)) as store:
        check_not_left_behind(store, settings)
        states = f"{store.name}: {store.address}"
        live = LivePolicy(store.promotions).current()
        changes = changed_since(store.promotions.history())
    return Checked(f"Live policy: {live}. Shadows: {', '.join(on) or 'none'}. States are in {states}", changes)


def serving_server(settings: Settings, shadows: Sequence[str] = (), clock: Callable[[], float] = time.time) -> FastAPI:
    """Over the store that the settings name. There is a key when it is called."""
    folder = folder_of(settings)
    store = open_store(settings)
    beside = open_shadows(wanted_shadows(settings, shadows), store, folder / "signals", clock)
    decisions = DecisionLog(folder / "decisions", clock)
    live = LivePolicy(store.promotions)
    recommender = Recommender(SERVED, live.current, store, decisions, clock, beside, settings.reward_window_s)

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            recommender.close()

    app = FastAPI(
        title="tipbench recommend",
        version=__version__,
        description=_API,
        docs_url=None,
        redoc_url=None,
        default_response_class=JsonAnswer,
        lifespan=running,
    )
    add_routes(app, Parts(recommender, SERVED, beside), _ERRORS)
    # Programs ask it many times a second, so what went well has no line in the log.
    errors = protect(app, KeyAccess(service_key(settings), Attempts(clock)), RULES, quiet=is_done)
    app.add_exception_handler(OSError, errors.of_storage)
    return app


def wanted_shadows(settings: Settings, named: Sequence[str]) -> list[str]:
    """Those of the setting and those that were named."""
    of_setting = (name.strip() for name in settings.get("TIPBENCH_SHADOWS").split(","))
    return list(dict.fromkeys(name for name in (*of_setting, *named) if name))
