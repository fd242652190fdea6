"""Suites: the list, one suite with everything in it, and anchors proposed from what judges agree on.

For admins only: whoever has seen the anchors can't be checked by them.
"""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from tipbench.core.errors import TipbenchError
from tipbench.server.ui import urls
from tipbench.server.ui.forms import Form, only
from tipbench.server.ui.pages import Parts, page
from tipbench.server.ui.rubric_markdown import rubric_html
from tipbench.server.ui.run_form import problems_of
from tipbench.server.views.suites import prompt_diff, prompt_text

MENU = (urls.SUITES, "Suites")
TOLERANCES = {0: "exactly", 1: "within 1 point"}


def router(parts: Parts) -> APIRouter:
    pages = APIRouter(include_in_schema=False)

    def refused(request: Request, headline: str, error: TipbenchError) -> Response:
        return page(request, parts, "run_problems.html", 422, headline=headline, problems=problems_of(error))

    @pages.get(urls.SUITES)
    def suites(request: Request) -> Response:
        return page(request, parts, "suites.html", lines=parts.suites.lines())

    @pages.post(urls.SUITES)
    def register(request: Request, form: Form) -> Response:
        try:
            suite = parts.suites.register(only(form, "folder").strip())
        except TipbenchError as error:
            return refused(request, "The suite was not registered", error)
        return Response(status_code=204, headers={"HX-Redirect": urls.suite(suite.name)})

    @pages.post(urls.UNREGISTER)
    def unregister(request: Request, form: Form) -> Response:
        try:
            parts.suites.unregister(only(form, "name"))
        except TipbenchError as error:
            return refused(request, "Nothing was changed", error)
        return Response(status_code=204, headers={"HX-Redirect": urls.SUITES})

    @pages.get(urls.SUITE)
    def one_suite(request: Request, suite: str, one: str = "", other: str = "") -> Response:
        view = parts.suites.get(suite)
        versions = list(view.suite.prompts)
        first = one if one in versions else versions[0]
        second = other if other in versions else versions[-1]
        return page(
            request,
            parts,
            "suite.html",
            view=view,
            suite=view.suite,
            rubric=rubric_html(view.suite.rubric.body),
            prompts={version: prompt_text(prompt) for version, prompt in view.suite.prompts.items()},
            compared=(first, second),
            diff=prompt_diff(view.suite.prompts[first], view.suite.prompts[second]),
            tolerances=TOLERANCES,
        )

    @pages.get(urls.PROPOSED_ANCHORS)
    def proposed(request: Request, suite: str, experiment: str, tolerance: int = 0) -> Response:
        view = parts.suites.get(suite)
        found = parts.suites.proposals(suite, experiment, tolerance)
        asked = {"experiment": experiment, "tolerance": tolerance}
        return page(request, parts, "suite_proposals.html", suite=view.suite, found=found, asked=asked)

    @pages.post(urls.ACCEPT_ANCHOR)
    def accept(request: Request, form: Form) -> Response:
        tolerance = int(only(form, "tolerance")) if only(form, "tolerance").isdecimal() else 0
        asked = (only(form, "suite"), only(form, "experiment"), only(form, "anchor"))
        try:
            anchors = parts.suites.accept(*asked, tolerance)
        except TipbenchError as error:
            return refused(request, "The anchor was not accepted", error)
        return page(request, parts, "suite_accepted.html", anchor=asked[2], anchors=anchors)

    return pages
