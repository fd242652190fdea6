"""Page rendering: one escaping template environment, and the values that all templates get."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader
from markupsafe import Markup, escape

from tipbench.bench.compare.html.templates import make_environment
from tipbench.core.text import duration
from tipbench.server.jobs.interface import Runner
from tipbench.server.ui import messages, urls
from tipbench.server.views.boards import Boards
from tipbench.server.views.decisions import Decisions
from tipbench.server.views.judging import JudgingDesk
from tipbench.server.views.recommender import RecommenderViews
from tipbench.server.views.run_requests import RunRequests
from tipbench.server.views.suites import Suites
from tipbench.web.tokens import Tokens, Visitor


@dataclass(frozen=True)
class Parts:
    """The objects that pages are built from; pages don't know where the data is stored."""

    boards: Boards
    requests: RunRequests
    runner: Runner
    desk: JudgingDesk
    decisions: Decisions
    suites: Suites
    tokens: Tokens
    recommender: RecommenderViews
    csrf: Callable[[Request], str]  # the CSRF token for this visitor's requests
    mlflow_run: Callable[[str, str], str]  # experiment id, run id → the run's page in MLflow
    address: str  # of the store, for display
    clock: Callable[[], float] = time.time


def page(request: Request, parts: Parts, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Render a page, or a part of one, for a visitor."""
    shared = {"csrf": parts.csrf(request), "address": parts.address, "now_ms": round(parts.clock() * 1000)}
    return bare_page(request, template, status, **shared, **values)


def bare_page(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Render a page that needs nothing from the store, e.g. before login."""
    csrf = getattr(request.state, "csrf", "")  # a logged-in visitor can log out from any page
    context = {"csrf": csrf, "address": "", "visitor": visitor_of(request), "here": request.url.path, **values}
    return HTMLResponse(environment().get_template(template).render(context), status)


def visitor_of(request: Request) -> Visitor | None:
    found = getattr(request.state, "visitor", None)
    return found if isinstance(found, Visitor) else None


@cache
def environment() -> Environment:
    templates = make_environment(PackageLoader("tipbench.server.ui"))
    templates.globals.update(urls=urls, say=messages, menu_of=menu_of)
    templates.filters.update(duration=duration, exact=exact)
    return templates


def menu_of(visitor: Visitor) -> Sequence[tuple[str, str]]:
    """Return the visitor's menu: paths and labels."""
    # Imported here, because the routers import all pages, which import this module.
    from tipbench.server.ui.routers import ADMIN_MENU, JUDGE_MENU

    return ADMIN_MENU if visitor.is_admin else JUDGE_MENU


def exact(text: str) -> Markup:
    """Return the text escaped but otherwise unchanged, for form values that are sent back and not read by people."""
    return escape(text)
