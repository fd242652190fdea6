"""Assemble the admin server: API and pages on top of one store and one runner."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.routing import Route

from tipbench.core.errors import InvalidInput
from tipbench.core.settings import Settings
from tipbench.core.version import __version__
from tipbench.server.api import parts as api_parts
from tipbench.server.api.routers import routers
from tipbench.server.jobs.catalog import open_runner
from tipbench.server.mcp.http import McpEndpoint
from tipbench.server.metrics import gauges_of
from tipbench.server.mlflow_pages.pages import PAGES_POLICY, MlflowPages
from tipbench.server.ui import pages as ui_parts
from tipbench.server.ui.entrance import render_error, render_login, render_notice
from tipbench.server.ui.routers import routers as page_routers
from tipbench.server.ui.static_files import PanelFiles
from tipbench.server.views.bench import new_id, open_bench_views
from tipbench.server.views.recommender import open_recommender_views
from tipbench.web.api_docs import DOCS_FILES, docs_router
from tipbench.web.authentication import Access, csrf_token
from tipbench.web.errors import ERROR_RESPONSES, JsonAnswer
from tipbench.web.hosts import allowed_hosts
from tipbench.web.login import login_router
from tipbench.web.metrics import METRICS, Metrics, metrics_router
from tipbench.web.middleware import install_middleware
from tipbench.web.paths import LOGIN, LOGOUT, MCP, PathRules

RULES = PathRules(
    # A callback is authenticated by a signature made with its batch's key.
    open=("/health", LOGIN, "/static/*", "/api/judging/callback/*"),
    judges=("/", LOGOUT, "/judging/*", "/api/judging/*", MCP),
    metrics=(METRICS,),
    forms=("/judging", LOGOUT),
    foreign=("/mlflow/*",),
    static=("/static/*", DOCS_FILES, "/mlflow/static-files/*"),
    policies={"/mlflow/*": PAGES_POLICY},
    body_limits=dict.fromkeys(("/api/judging/batches/*/scores", "/api/judging/callback/*", "/mlflow/*"), 50_000_000),
)
_OPENAPI = "/api/openapi.json"
_API = (
    "Everything under /api requires 'Authorization: Bearer TOKEN'. All errors have the same form: "
    '{"error": {"code", "message", "problems"}}.'
)


def admin_server(
    address: str, settings: Settings, access: Access, clock: Callable[[], float] = time.time, host: str = "localhost"
) -> FastAPI:
    """Return the app for the store at `address`.

    It watches jobs from the moment it is created; everything is released when the app's lifespan ends.
    """
    home = settings.home
    hosts = [host, *_hosts(settings)]
    runner = open_runner(address, home, settings, clock, new_id)
    recommender = open_recommender_views(settings, clock, new_id)
    metrics = Metrics("serve", "mlflow")
    bench = open_bench_views(address, settings, runner, clock, new_id, metrics)
    mlflow = MlflowPages(address, home / "server", settings, render_notice)

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await mlflow.close()
            bench.close()
            recommender.simulations.close()
            access.tokens.close()

    app = FastAPI(
        title="tipbench",
        version=__version__,
        description=_API,
        openapi_url=_OPENAPI,
        docs_url=None,
        redoc_url=None,
        default_response_class=JsonAnswer,
        lifespan=running,
    )
    for router in routers(
        api_parts.Parts(bench.boards, bench.requests, runner, bench.desk, bench.decisions, access.tokens, recommender)
    ):
        app.include_router(router, responses=ERROR_RESPONSES)
    parts = ui_parts.Parts(
        boards=bench.boards,
        requests=bench.requests,
        runner=runner,
        desk=bench.desk,
        decisions=bench.decisions,
        suites=bench.suites,
        tokens=access.tokens,
        recommender=recommender,
        csrf=csrf_token,
        mlflow_run=mlflow.run_path,
        address=address,
        clock=clock,
    )
    app.include_router(docs_router("tipbench", _OPENAPI))
    app.include_router(metrics_router(metrics, lambda: gauges_of(bench.gauges)))
    app.include_router(login_router(access, render_login))
    for router in page_routers(parts):
        app.include_router(router)
    app.mount("/static", PanelFiles())
    app.mount("/mlflow", mlflow)
    app.router.routes.append(Route(MCP, McpEndpoint(bench), methods=["POST"]))
    install_middleware(app, access, RULES, metrics, render_error, hosts)
    return app


def _hosts(settings: Settings) -> list[str]:
    """Return the host names that this server answers to, including the one that webhook judges call back."""
    try:
        callback = urlsplit(settings.get("TIPBENCH_CALLBACK_URL")).hostname
    except ValueError as error:
        raise InvalidInput(f"TIPBENCH_CALLBACK_URL is not an address: {error}") from None
    return [*allowed_hosts(settings.get("TIPBENCH_ALLOWED_HOSTS")), *([callback] if callback else [])]
