"""Assemble the recommender's HTTP service."""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, NamedTuple

from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer

from tipbench.core.files import private_folder
from tipbench.core.paths import recommender_folder
from tipbench.core.settings import Settings
from tipbench.core.version import __version__
from tipbench.recommender.log.decisions import DecisionLog
from tipbench.recommender.policies.catalog import SERVED
from tipbench.recommender.promotion.evidence import changed_since
from tipbench.recommender.promotion.live import LivePolicy
from tipbench.recommender.recommender import Recommender
from tipbench.recommender.service import health, reward, score, shadows, users
from tipbench.recommender.service.answers import Parts
from tipbench.recommender.service.direct import DirectEndpoint, DirectRoutes, direct_endpoints
from tipbench.recommender.service.executors import Executor, GroupCommit, ThreadPool
from tipbench.recommender.service.metrics import FAMILIES, CountingObserver
from tipbench.recommender.shadows.runner import check_names, open_shadows
from tipbench.recommender.store.files import FileStore
from tipbench.recommender.store.moving import check_not_left_behind, open_store
from tipbench.web.api_docs import DOCS, DOCS_FILES, docs_router
from tipbench.web.attempts import AttemptLimiter
from tipbench.web.authentication import KeyAccess, metrics_token
from tipbench.web.counters import SharedCounters
from tipbench.web.errors import JsonAnswer, error_responses
from tipbench.web.metrics import METRICS, Metrics, metrics_router
from tipbench.web.middleware import install_middleware
from tipbench.web.paths import PathRules
from tipbench.web.service_key import ServiceKey

RULES = PathRules(open=("/health", f"{DOCS}/*"), metrics=(METRICS,), static=(DOCS_FILES,))
_KEY = "TIPBENCH_SERVING_KEY"
# Only for the OpenAPI document; the middleware authenticates.
_BEARER = HTTPBearer(auto_error=False, description="The service's key.")
_API = (
    "Everything but /health and /docs requires 'Authorization: Bearer KEY'. All errors have the same form: "
    '{"error": {"code", "message", "problems"}}.'
)
_ERRORS = error_responses(
    {
        400: "The request can't be read.",
        401: "No key, or not a valid one.",
        404: "Not found.",
        409: "The event was reported differently before, or the state was made with other features.",
        413: "The body is too large.",
        422: "The request is not valid; `problems` lists everything that is wrong with it.",
        429: "Too many failed attempts.",
        500: "Something went wrong; the server's log has it.",
        503: "States can't be read or written right now.",
    }
)


def folder_of(settings: Settings) -> Path:
    """Return the recommender's folder, created with access for its owner only."""
    return private_folder(recommender_folder(settings.home))


def service_key(settings: Settings) -> ServiceKey:
    return ServiceKey(folder_of(settings) / "key", _KEY, settings.get(_KEY))


class ServiceCheck(NamedTuple):
    """What to report when the service starts."""

    summary: str  # one line
    changes: list[str]  # how the live policy differs from what was promoted, for example after an update of tipbench


def check_service(settings: Settings, shadows: Sequence[str]) -> ServiceCheck:
    """Check that a service can be started with these settings and shadows; raise what is wrong."""
    _ = settings.reward_window_s  # raises if it is not a duration
    metrics_token(settings)  # raises if it is too short
    on = wanted_shadows(settings, shadows)
    check_names(on)
    with closing(open_store(settings)) as store:
        check_not_left_behind(store, settings)
        states = f"{store.name}: {store.address}"
        live = LivePolicy(store.promotions).current()
        changes = changed_since(store)
    return ServiceCheck(
        f"Live policy: {live}. Shadows: {', '.join(on) or 'none'}. User states are stored in {states}", changes
    )


def serving_server(
    settings: Settings,
    shadows: Sequence[str] = (),
    clock: Callable[[], float] = time.time,
    counters: SharedCounters | None = None,
) -> FastAPI:
    """Build the service over the store that the settings name. The service key must exist by now.

    `counters` are those of all worker processes, if there are several.
    """
    folder = folder_of(settings)
    store = open_store(settings)
    metrics = Metrics("recommend", store.name, FAMILIES, counters)
    wanted = wanted_shadows(settings, shadows)
    observer = CountingObserver(metrics, SERVED, wanted)
    shadow_policies = open_shadows(wanted, store, folder / "signals", clock, observer=observer)
    decisions = DecisionLog(folder / "decisions", clock)
    live = LivePolicy(store.promotions)
    recommender = Recommender(
        *(SERVED, live.current, store, decisions, clock, shadow_policies, settings.reward_window_s, live.identity),
        observer=observer,
    )
    executor: Executor
    if isinstance(store, FileStore):
        executor = GroupCommit(store.unsynced, observer.synced)
    else:
        from tipbench.recommender.store.postgresql_connections import MAX_CONNECTIONS

        executor = ThreadPool(MAX_CONNECTIONS)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            executor.close()
            recommender.close()

    app = FastAPI(
        title="tipbench recommend",
        version=__version__,
        description=_API,
        docs_url=None,
        redoc_url=None,
        default_response_class=JsonAnswer,
        lifespan=lifespan,
    )
    endpoints = _add_routes(app, Parts(recommender, SERVED, shadow_policies), _ERRORS)
    app.add_middleware(DirectRoutes, fastapi=app, endpoints=endpoints, executor=executor)
    app.include_router(metrics_router(metrics))
    access = KeyAccess(service_key(settings), AttemptLimiter(clock), metrics_token(settings))
    errors = install_middleware(app, access, RULES, metrics)
    app.add_exception_handler(OSError, errors.storage_error)
    return app


def wanted_shadows(settings: Settings, named: Sequence[str]) -> list[str]:
    """Return the names of the shadows from the setting and from the command line, without duplicates."""
    from_setting = (name.strip() for name in settings.get("TIPBENCH_SHADOWS").split(","))
    return list(dict.fromkeys(name for name in (*from_setting, *named) if name))


def _add_routes(app: FastAPI, parts: Parts, responses: dict[int | str, dict[str, Any]]) -> dict[str, DirectEndpoint]:
    """Include all routers; return the endpoints that are reached directly, by path."""
    app.include_router(docs_router(app.title, app.openapi_url or ""))
    app.include_router(health.router(parts), responses=responses)
    endpoints: dict[str, DirectEndpoint] = {}
    for one in (score, reward, users, shadows):
        router = one.router(parts)
        app.include_router(router, dependencies=[Depends(_BEARER)], responses=responses)
        if one in (score, reward):
            endpoints |= direct_endpoints(router)
    return endpoints
