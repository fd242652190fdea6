"""The start page, the login page, and the pages for errors and notices."""

from collections.abc import Sequence
from importlib.resources import files

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from tipbench.server.mlflow_pages.pages import Notice
from tipbench.server.ui import urls
from tipbench.server.ui.pages import Parts, bare_page, page, visitor_of
from tipbench.server.ui.rubric_markdown import rubric_html

_TITLES = {
    400: "The request can’t be answered",
    401: "Log in first",
    403: "Not allowed",
    404: "Not found",
    405: "Not supported",
    413: "Too much at once",
    422: "Invalid request",
    429: "Too many attempts",
    503: "Not available right now",
}


def router(parts: Parts) -> APIRouter:
    pages = APIRouter(include_in_schema=False)

    @pages.get("/")
    async def first(request: Request) -> Response:
        visitor = visitor_of(request)
        return RedirectResponse(urls.EXPERIMENTS if visitor and visitor.is_admin else urls.JUDGING, 303)

    @pages.get(urls.TERMS)
    def terms(request: Request) -> Response:
        text = (files("tipbench.server.ui") / "terms.md").read_text("utf-8")
        return page(request, parts, "terms.html", terms=rubric_html(text.partition("\n")[2], heading_offset=0))

    return pages


def render_login(request: Request, next: str, problem: str) -> Response:
    """Render the login page. `next` is the already validated path to go to afterwards."""
    return bare_page(request, "login.html", 401 if problem else 200, next=next, problem=problem)


def render_error(request: Request, status: int, message: str, problems: Sequence[str]) -> Response:
    title = _TITLES.get(status, "Something went wrong")
    return bare_page(request, "error.html", status, title=title, message=message, problems=problems)


def render_notice(request: Request, notice: Notice) -> Response:
    """Render the notice that is shown while MLflow's pages are not available."""
    return bare_page(request, "notice.html", notice.status, notice=notice)
