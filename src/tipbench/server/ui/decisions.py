"""Decisions in rounds: the form that starts one, and the page that shows where it stands."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from tipbench.core.errors import InvalidInput, Problems, TipbenchError
from tipbench.server.ui import urls
from tipbench.server.ui.forms import Form, only, options_of
from tipbench.server.ui.pages import Parts, page
from tipbench.server.ui.run_form import problems_of, run_fields
from tipbench.server.views.decisions import DecisionRules, DecisionView
from tipbench.web.authentication import SignedIn
from tipbench.web.login import Fields

_RULES = ("claim", "good_enough", "budget")
_NOT_DRAWN = ("n_scenarios", "repeats")  # every persona of the pool may be needed, each once


def router(parts: Parts) -> APIRouter:
    pages = APIRouter(include_in_schema=False)

    def refused(request: Request, headline: str, error: TipbenchError) -> Response:
        return page(request, parts, "run_problems.html", 422, headline=headline, problems=problems_of(error))

    @pages.get(urls.NEW_DECISION)
    def new_decision(request: Request) -> Response:
        choices = parts.decisions.choices()
        fields = run_fields(choices, parts.clock(), _NOT_DRAWN)
        return page(
            request, parts, "decision_form.html", choices=choices, fields=fields, ticked=choices.defaults.model_names
        )

    @pages.post(urls.DECISION)
    def start(request: Request, form: Form) -> Response:
        options = {key: values for key, values in form.items() if key not in _RULES}
        try:
            found = parts.decisions.start(options_of(options), _rules(form))
        except TipbenchError as error:
            return refused(request, "The decision was not started", error)
        return Response(status_code=204, headers={"HX-Redirect": urls.decision(found.experiment)})

    @pages.get(urls.DECISION)
    def decision(request: Request, experiment: str) -> Response:
        return page(request, parts, "decision.html", **_values(parts.decisions.get(experiment), request))

    @pages.get(urls.DECISION_LIVE)
    def live(request: Request, experiment: str, seen: str = "") -> Response:
        """Return what has changed since the last poll."""
        found = parts.decisions.get(experiment)
        if found.digest == seen:
            return Response(status_code=204)
        return page(request, parts, "decision_live.html", **_values(found, request))

    @pages.post(urls.STOP_DECISION)
    def stop(form: Form, visitor: SignedIn) -> Response:
        found = parts.decisions.stop(only(form, "experiment"), visitor.name)
        return Response(status_code=204, headers={"HX-Redirect": urls.decision(found.experiment)})

    @pages.post(urls.CONTINUE_DECISION)
    def go_on(request: Request, form: Form) -> Response:
        try:
            found = parts.decisions.go_on(only(form, "experiment"), _rules(form))
        except InvalidInput as error:
            return refused(request, "The decision does not go on", error)
        return Response(status_code=204, headers={"HX-Redirect": urls.decision(found.experiment)})

    return pages


def _values(found: DecisionView, request: Request) -> dict[str, Any]:
    judge = request.state.visitor.name
    return {"view": found, "round": found.round, "verdict": found.round.verdict, "items": found.round.items_for(judge)}


def _rules(form: Fields) -> DecisionRules:
    """Convert the rules in a form; raise Problems, listing every value that can't be."""
    problems = []
    good_enough: float | None = None
    budget: int | None = None
    if text := only(form, "good_enough").strip():
        try:
            good_enough = float(text)
        except ValueError:
            problems.append(f"good_enough: must be a number of points (given: {text[:40]!r})")
    if text := only(form, "budget").strip():
        try:
            budget = int(text)
        except ValueError:
            problems.append(f"budget: must be a whole number of judgements (given: {text[:40]!r})")
    if problems:
        raise Problems("the decision can't be started:", problems)
    return DecisionRules(only(form, "claim") or None, good_enough, budget)
