"""Simulations: the list, a form to start one, and one with its progress and what it found."""

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import ValidationError

from tipbench.core.errors import Problems, TipbenchError
from tipbench.core.identity import SHORT, text_digest
from tipbench.recommender.policies.catalog import SERVED
from tipbench.recommender.simulation.rollout import ARMS
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

_A_PAGE = 50
_NUMBERS = ("seeds", "first_seed", "steps", "offered")
_USUAL = ("egreedy", "egreedy/v2", "linucb", "category-mean")


@dataclass(frozen=True)
class SimulationView:
    """One moment of a simulation."""

    found: Simulation
    log: str
    tens_of_s: int  # how long it has been running, so that a page that nothing else happens on still goes on

    @property
    def digest(self) -> str:
        """Another one as soon as anything that is shown has changed."""
        return text_digest(repr((self.found.job, self.found.progress, self.log, self.tens_of_s)))[:SHORT]

    @property
    def phase(self) -> str:
        """Another one when there is something to be said aloud."""
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

    def values_of(view: SimulationView, show: str) -> dict[str, Any]:
        is_done = view.found.job.state == "finished"
        outcome = simulations.outcome(view.found.job.id) if is_done else None
        here_is = urls.simulation(view.found.job.id)
        return {"moment": view, "outcome": outcome, **(curve_values(outcome, show, here_is) if outcome else {})}

    @pages.get(urls.SIMULATIONS)
    def listed(request: Request, before: int | None = None) -> Response:
        found = simulations.newest(_A_PAGE, before)
        return page(
            request,
            parts,
            "simulations.html",
            simulations=found,
            more=len(found) == _A_PAGE,
            before=before,
            served=list(SERVED),
            policies=list(ARMS),
            usual=_USUAL,
            defaults={name: SimulationAsked.model_fields[name].default for name in _NUMBERS},
        )

    @pages.post(urls.SIMULATIONS)
    def start(request: Request, form: Form) -> Response:
        try:
            started = simulations.start(_asked(form))
        except TipbenchError as error:
            problems, headline = problems_of(error), "It was not started"
            return page(request, parts, "simulation_problems.html", 422, headline=headline, problems=problems)
        return Response(status_code=204, headers={"HX-Redirect": urls.simulation(started.job.id)})

    @pages.get(urls.SIMULATIONS + "/{simulation_id}")
    def simulation(request: Request, simulation_id: str, show: str = "") -> Response:
        return page(request, parts, "simulation.html", **values_of(view_at(simulation_id), show))

    @pages.get(urls.SIMULATIONS + "/{simulation_id}/live")
    def live(request: Request, simulation_id: str, seen: str = "", phase: str = "") -> Response:
        """What has changed since; with its end the asking ends."""
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


def _asked(form: Fields) -> SimulationAsked:
    """Raises Problems with everything that is wrong with it."""
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
    """What is none stays as it was written, for the check to complain about."""
    try:
        return int(text)
    except ValueError:
        return text
