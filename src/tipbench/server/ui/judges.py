"""Judges: invited by name, with a token that is shown once."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from tipbench.core.errors import InvalidInput
from tipbench.server.ui import urls
from tipbench.server.ui.forms import Form, only
from tipbench.server.ui.pages import Parts, page

MENU = (urls.JUDGES, "Judges")


def router(parts: Parts) -> APIRouter:
    pages = APIRouter(include_in_schema=False)

    @pages.get("/judges")
    def judges(request: Request) -> Response:
        return page(
            request,
            parts,
            "judges.html",
            judges=parts.tokens.judges(),
            automatic=parts.requests.judges(),
            calibrations=parts.requests.calibrations(),
        )

    @pages.post("/judges")
    def invite(request: Request, form: Form) -> Response:
        name = only(form, "name").strip()
        try:
            token = parts.tokens.invite(name)
        except InvalidInput as error:
            return page(request, parts, "problem.html", 422, problem=str(error))
        login = f"{request.base_url}login"
        listed = parts.tokens.judges()
        return page(request, parts, "judges_invited.html", name=name, token=token, login=login, judges=listed)

    @pages.post("/judges/revoke")
    def revoke(request: Request, form: Form) -> Response:
        try:
            parts.tokens.revoke(only(form, "name"))
        except InvalidInput as error:
            return page(request, parts, "problem.html", 422, problem=str(error))
        return page(request, parts, "judges_changes.html", judges=parts.tokens.judges())

    return pages
