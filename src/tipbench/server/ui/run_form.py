"""The form for a run: its choices, the estimate, and starting it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from fastapi import APIRouter, Request
from fastapi.responses import Response

from tipbench.bench.options import OptionField, Options, option_fields
from tipbench.core.errors import Problems, TipbenchError
from tipbench.core.text import utc_day
from tipbench.server.ui import urls
from tipbench.server.ui.forms import FRESH, RETRY_FAILED, Form, options_of
from tipbench.server.ui.pages import Parts, page
from tipbench.server.views.run_requests import Choices

_IN_VIEW = ("n_tips", "n_scenarios", "temperature", "experiment", "diversity", "judge")
_BY_SUITE = ("experiment", "n_tips")  # fields whose defaults are the suite's
_NOT_DRAWN = ("models", "prompts", "suite", "mlflow_url")  # chosen from lists, or set by the server


# The form's fields, derived from the configuration table.


@dataclass(frozen=True)
class RunField:
    key: str
    help: str
    kind: Literal["switch", "choice", "number", "text"]
    value: str
    choices: Sequence[tuple[str, str]] = ()  # value, label

    @property
    def is_on(self) -> bool:
        return self.value == "true"


@dataclass(frozen=True)
class RunFields:
    in_view: Sequence[RunField]
    more: Sequence[RunField]  # collapsed


def run_fields(choices: Choices, now_s: float, without: Sequence[str] = ()) -> RunFields:
    fields = {one.key: one for one in option_fields() if one.key not in (*_NOT_DRAWN, *without)}
    by_key = {key: _run_field(field, choices, now_s) for key, field in fields.items()}
    more = [field for key, field in by_key.items() if key not in _IN_VIEW]
    return RunFields([by_key[key] for key in _IN_VIEW if key in by_key], more)


def _run_field(field: OptionField, choices: Choices, now_s: float) -> RunField:
    default = getattr(choices.defaults, field.key)
    named: Sequence[str] = get_args(Options.model_fields[field.key].annotation) if field.type is str else ()
    if field.key == "judge":
        judges = [(name, name) for name in choices.judges]
        return RunField(
            field.key, "Who judges.", "choice", default or "", [("", "a person, on the judging page"), *judges]
        )
    if field.key == "experiment":
        today = utc_day(now_s * 1000)
        return RunField(field.key, field.help, "text", f"{choices.prefix}{today}")
    if field.type is bool:
        return RunField(field.key, field.help, "switch", "true" if default else "")
    if named and all(isinstance(name, str) for name in named):
        return RunField(field.key, field.help, "choice", _text(default), [(name, name) for name in named])
    return RunField(field.key, field.help, "text" if field.type is str else "number", _text(default))


def _text(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Problem:
    """One problem, and the field that it is about, if any."""

    field: str
    text: str


def router(parts: Parts) -> APIRouter:
    pages = APIRouter(include_in_schema=False)

    def refused(request: Request, headline: str, error: TipbenchError) -> Response:
        return page(request, parts, "run_problems.html", 422, headline=headline, problems=problems_of(error))

    @pages.get(urls.NEW_RUN)
    def new_run(request: Request, suite: str = "") -> Response:
        try:
            choices = parts.requests.choices(suite_name=suite or None)
        except TipbenchError as error:
            return refused(request, "The options for a run can’t be loaded", error)
        fields = run_fields(choices, parts.clock())
        ticked = choices.defaults.model_names
        return page(request, parts, "run_form.html", choices=choices, fields=fields, ticked=ticked)

    @pages.get(urls.RUN_SUITE)
    def another_suite(request: Request, suite: str) -> Response:
        """Return what another suite changes in the form: its prompts, and the defaults that go by it."""
        try:
            choices = parts.requests.choices(suite_name=suite, with_models=False)
        except TipbenchError as error:
            return page(request, parts, "run_prompts.html", choices=None, problems=problems_of(error))
        by_suite = [field for field in run_fields(choices, parts.clock()).in_view if field.key in _BY_SUITE]
        answer = page(request, parts, "run_suite.html", choices=choices, by_suite=by_suite)
        answer.headers["HX-Trigger-After-Settle"] = "suite-changed"  # the estimate is made again
        return answer

    @pages.get("/runs/models")
    def models_there(request: Request, ollama_url: str = "") -> Response:
        """List the models again, for another Ollama."""
        try:
            choices = parts.requests.choices(ollama_url or None)
        except TipbenchError as error:
            return refused(request, "The models can’t be listed", error)
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
            options = parts.requests.validate(options_of(form))
            job = parts.runner.start(options, retry_failed=RETRY_FAILED in form, fresh=FRESH in form)
        except TipbenchError as error:
            return refused(request, "The run was not started", error)
        return Response(status_code=204, headers={"HX-Redirect": urls.job(job.id)})

    return pages


def problems_of(error: TipbenchError) -> list[Problem]:
    texts = error.problems if isinstance(error, Problems) else (str(error),)
    return [_problem(text) for text in texts]


def _problem(text: str) -> Problem:
    """Split off the field: a problem with an option begins with its key."""
    key, colon, _ = text.partition(":")
    return Problem(key if colon and key.isidentifier() else "", text)
