"""Simulations: the list, a form to start one, and a single simulation with its progress and outcome."""

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import ValidationError

from tipbench.core.errors import Problems, TipbenchError
from tipbench.core.identity import SHORT, text_digest
from tipbench.recommender.policies.catalog import SERVED
from tipbench.recommender.simulation.rollout import ARM_NAMES
from tipbench.server.jobs.simulation_asked import SimulationAsked
from tipbench.server.ui import urls
from tipbench.server.ui.forms import Form, only
from tipbench.server.ui.jobs import STOP_POLLING
from tipbench.server.ui.pages import Parts, page
from tipbench.server.ui.persona_curves import curve_values
from tipbench.server.ui.run_form import problems_of
from tipbench.server.ui.static_files import attachment
from tipbench.server.views.simulations import Simulation
from tipbench.web.login import Fields
from tipbench.web.validation import problems_in

_PAGE_SIZE = 50
_NUMBERS = ("seeds", "first_seed", "steps", "offered")
_PRESELECTED = ("egreedy", "egreedy/v2", "linucb", "category-mean")


@dataclass(frozen=True)
class SimulationView:
    """A snapshot of a simulation."""

    found: Simulation
    log: str
    tens_of_s: int  # how long it has been running, so that the page is refreshed even if nothing else changes

    @property
    def digest(self) -> str:
        """Return a digest that changes with anything that is shown."""
        return text_digest(repr((self.found.job, self.found.progress, self.log, self.tens_of_s)))[:SHORT]

    @property
    def phase(self) -> str:
        """Return a key that changes when screen readers should announce something."""
        job = self.found.job
        return f"{job.state}-{self.found.progress.phase}-{job.cancelling}"


def router(parts: Parts) -> APIRouter:
    pages = APIRouter(include_in_schema=False)
    simulations = parts.recommender.simulations

    def view_at(simulation_id: str) -> SimulationView:
        found = simulations.one(simulation_id)
        job = found.job
        running_ms = 0 if job.started_ms is None or job.ended else round(parts.clock() * 1000) - job.started_ms
        return SimulationView(found, simulations.log(simulation_id), running_ms // 10_000)

    def with_priors() -> list[str]:
        """Return the policies with priors; none if their store can't be read, which the page of priors tells."""
        try:
            return parts.recommender.priors.read().candidates
        except TipbenchError:
            return []

    def values_of(view: SimulationView, show: str) -> dict[str, Any]:
        is_done = view.found.job.state == "finished"
        outcome = simulations.outcome(view.found.job.id) if is_done else None
        path = urls.simulation(view.found.job.id)
        return {"moment": view, "outcome": outcome, **(curve_values(outcome, show, path) if outcome else {})}

    @pages.get(urls.SIMULATIONS)
    def listed(request: Request, before: int | None = None) -> Response:
        found = simulations.newest(_PAGE_SIZE, before)
        return page(
            request,
            parts,
            "simulations.html",
            simulations=found,
            more=len(found) == _PAGE_SIZE,
            before=before,
            served=[*SERVED, *with_priors()],
            policies=list(ARM_NAMES),
            usual=_PRESELECTED,
            defaults={name: SimulationAsked.model_fields[name].default for name in _NUMBERS},
        )

    @pages.post(urls.SIMULATIONS)
    def start(request: Request, form: Form) -> Response:
        try:
            started = simulations.start(_request(form))
        except TipbenchError as error:
            problems, headline = problems_of(error), "It was not started"
            return page(request, parts, "simulation_problems.html", 422, headline=headline, problems=problems)
        return Response(status_code=204, headers={"HX-Redirect": urls.simulation(started.job.id)})

    @pages.get(urls.SIMULATIONS + "/{simulation_id}")
    def simulation(request: Request, simulation_id: str, show: str = "") -> Response:
        return page(request, parts, "simulation.html", **values_of(view_at(simulation_id), show))

    @pages.get(urls.SIMULATIONS + "/{simulation_id}/live")
    def live(request: Request, simulation_id: str, seen: str = "", phase: str = "") -> Response:
        """Return what has changed since the last poll; after the end, tell htmx to stop polling."""
        view = view_at(simulation_id)
        ended = view.found.job.ended
        if view.digest == seen and not ended:
            return Response(status_code=204)
        status = STOP_POLLING if ended else 200
        aloud = view.phase != phase
        return page(request, parts, "simulation_changes.html", status, aloud=aloud, **values_of(view, ""))

    @pages.get(urls.SIMULATIONS + "/{simulation_id}/outcome.json")
    def outcome_file(simulation_id: str) -> Response:
        found = simulations.outcome_json(simulation_id)
        return Response(found, media_type="application/json", headers=attachment(f"simulation-{simulation_id}", "json"))

    @pages.post(urls.SIMULATIONS + "/{simulation_id}/cancel")
    def cancel(request: Request, simulation_id: str) -> Response:
        return page(request, parts, "simulation_actions.html", found=simulations.cancel(simulation_id), swapped=False)

    return pages


def _request(form: Fields) -> SimulationAsked:
    """Return the request in the form; raise Problems, listing every one."""
    given: dict[str, Any] = {"kind": only(form, "kind")}
    given |= {name: _number(only(form, name)) for name in _NUMBERS if only(form, name).strip()}
    given |= {name: only(form, name) for name in ("candidate", "incumbent") if only(form, name)}
    if given["kind"] == "run":
        given["policies"] = list(form.get("policies", ()))
    try:
        return SimulationAsked.model_validate(given)
    except ValidationError as error:
        raise Problems("the simulation can't be started:", problems_in(error.errors())) from error


def _number(text: str) -> int | str:
    """Convert to an integer; text that isn't one is returned unchanged, for validation to report."""
    try:
        return int(text)
    except ValueError:
        return text
