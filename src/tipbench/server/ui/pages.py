"""How every page is made: one environment that escapes, and what all templates know."""

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
from tipbench.server.ui import messages as words
from tipbench.server.ui import urls
from tipbench.server.views.boards import Boards
from tipbench.server.views.judging import JudgingDesk
from tipbench.server.views.recommender import RecommenderRoom
from tipbench.server.views.run_requests import RunRequests
from tipbench.web.tokens import Tokens, Visitor

# What the pages are made from. They know interfaces and nothing of where the data lies.


@dataclass(frozen=True)
class Parts:
    boards: Boards
    requests: RunRequests
    runner: Runner
    desk: JudgingDesk
    tokens: Tokens
    recommender: RecommenderRoom
    csrf: Callable[[Request], str]  # the token that a request of this visitor must carry
    mlflow_run: Callable[[str, str], str]  # experiment's id, run's id → its page in MLflow
    address: str  # of the store, for show
    clock: Callable[[], float] = time.time


def page(request: Request, parts: Parts, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A page, or a part of one, for a visitor."""
    shared = {"csrf": parts.csrf(request), "address": parts.address, "now_ms": round(parts.clock() * 1000)}
    return bare_page(request, template, status, **shared, **values)


def bare_page(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """One that needs nothing from the store, as for somebody who has not come in yet."""
    csrf = getattr(request.state, "csrf", "")  # whoever is in can log out from any page
    known = {"csrf": csrf, "address": "", "visitor": visitor_of(request), "here": request.url.path, **values}
    return HTMLResponse(environment().get_template(template).render(known), status)


def visitor_of(request: Request) -> Visitor | None:
    found = getattr(request.state, "visitor", None)
    return found if isinstance(found, Visitor) else None


@cache
def environment() -> Environment:
    made = make_environment(PackageLoader("tipbench.server.ui"))
    made.globals.update(urls=urls, say=words, menu_of=menu_of)
    made.filters.update(duration=duration, exact=exact)
    return made


def menu_of(visitor: Visitor) -> Sequence[tuple[str, str]]:
    """Paths and names of the pages that the visitor can go to from everywhere."""
    from tipbench.server.ui.routers import (
        ADMIN_MENU,
        JUDGE_MENU,
    )  # which imports all pages, and they import this module

    return ADMIN_MENU if visitor.is_admin else JUDGE_MENU


def exact(text: str) -> Markup:
    """Escaped and otherwise as it is: for a value that a form sends back, which nobody reads."""
    return escape(text)
