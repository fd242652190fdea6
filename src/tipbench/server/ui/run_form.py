"""The dialog for a run: what can be chosen, what it would take, and the start."""

from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response

from tipbench.core.errors import Problems, TipbenchError
from tipbench.server.ui import urls
from tipbench.server.ui.forms import FRESH, RETRY_FAILED, Form, options_of
from tipbench.server.ui.pages import page
from tipbench.server.ui.parts import Parts
from tipbench.server.ui.run_fields import run_fields


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, and with which field, if it says so."""

    field: str
    text: str


def router(parts: Parts) -> APIRouter:
    pages = APIRouter(include_in_schema=False)

    def refused(request: Request, headline: str, error: TipbenchError) -> Response:
        return page(request, parts, "run_problems.html", 422, headline=headline, problems=problems_of(error))

    @pages.get("/runs/new")
    def new_run(request: Request) -> Response:
        try:
            choices = parts.requests.choices()
        except TipbenchError as error:
            return refused(request, "What can be run here can’t be told", error)
        fields = run_fields(choices, parts.clock())
        ticked = choices.defaults.model_names
        return page(request, parts, "run_form.html", choices=choices, fields=fields, ticked=ticked)

    @pages.get("/runs/models")
    def models_there(request: Request, ollama_url: str = "") -> Response:
        """The models again, of another Ollama."""
        try:
            choices = parts.requests.choices(ollama_url or None)
        except TipbenchError as error:
            return refused(request, "These models can’t be told", error)
        return page(request, parts, "run_models.html", choices=choices, ticked=request.query_params.getlist("models"))

    @pages.post("/runs/estimate")
    def estimate(request: Request, form: Form) -> Response:
        try:
            found = parts.requests.estimate(options_of(form))
        except TipbenchError as error:
            return page(request, parts, "run_estimate.html", estimate=None, problems=problems_of(error))
        return page(request, parts, "run_estimate.html", estimate=found, problems=())

    @pages.post("/runs")
    def start(request: Request, form: Form) -> Response:
        try:
            options = parts.requests.checked(options_of(form))
            job = parts.runner.start(options, retry_failed=RETRY_FAILED in form, fresh=FRESH in form)
        except TipbenchError as error:
            return refused(request, "The run was not started", error)
        return Response(status_code=204, headers={"HX-Redirect": urls.job(job.id)})

    return pages


def problems_of(error: TipbenchError) -> list[Problem]:
    texts = error.problems if isinstance(error, Problems) else (str(error),)
    return [_problem(text) for text in texts]


def _problem(text: str) -> Problem:
    """Problems of options begin with their key."""
    key, colon, _ = text.partition(":")
    return Problem(key if colon and key.isidentifier() else "", text)
