"""The judging pages: what waits for a judge, a batch item by item, and its drift report once it is handed in.

They are blind: no page, URL or header names a model, prompt, experiment or run.
"""

from typing import Any, NamedTuple
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from tipbench.bench.judge.sample import FIRST_BATCH, SIZES, fitting_mix, mix_for, seconds_for
from tipbench.core.errors import InvalidInput
from tipbench.core.untrusted import json_text
from tipbench.server.ui import urls
from tipbench.server.ui.forms import only
from tipbench.server.ui.judging_sheet import given_data, levels, sheet_data, steps, unscored
from tipbench.server.ui.pages import Parts, page
from tipbench.server.ui.rubric_markdown import rubric_html
from tipbench.server.views.judging import Waiting
from tipbench.server.views.judging_report import judging_report
from tipbench.server.views.sheet import MAX_NOTE_LENGTH, Change
from tipbench.web.authentication import signed_in
from tipbench.web.login import CsrfForm

MENU = (urls.JUDGING, "Judging")


class Size(NamedTuple):
    """A batch size to choose."""

    value: int
    items: int  # fewer than `value` if fewer candidates wait
    takes: str


class Judging:
    """The request handlers."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._desk = parts.desk

    def waiting(self, request: Request, experiment: str | None = None) -> Response:
        return self._waiting(request, experiment)

    def start(self, request: Request, form: CsrfForm, experiment: str | None = None) -> Response:
        """Open the next batch. Only an admin can choose the experiment."""
        visitor = signed_in(request)
        items = only(form, "items") or str(FIRST_BATCH)
        if items not in map(str, SIZES):
            raise InvalidInput(f"a batch has {', '.join(map(str, SIZES))} items; choose one of these sizes")
        batch = self._desk.next_batch(visitor.name, experiment if visitor.is_admin else None, int(items))
        if batch is None:
            return self._waiting(request, experiment, "Nothing is left to judge: all texts have scores by now.")
        return RedirectResponse(batch_path(batch.batch), 303)

    def batch(self, request: Request, batch: str) -> Response:
        sheet = self._desk.sheet(batch, signed_in(request).name)
        if sheet.handed_in:
            return RedirectResponse(batch_path(batch, "report"), 303)
        return self._render(
            request,
            "judging_batch.html",
            sheet=sheet,
            steps=steps(sheet),
            introduction=rubric_html(sheet.introduction),
            note_limit=MAX_NOTE_LENGTH,
        )

    def items(self, request: Request, batch: str) -> Response:
        return _json(sheet_data(self._desk.sheet(batch, signed_in(request).name)))

    def save(self, request: Request, batch: str, slot: str, change: Change) -> Response:
        saved = self._desk.save(batch, signed_in(request).name, slot, change.model_dump(exclude_unset=True))
        return _json({"given": given_data(saved.given), "done": saved.done, "items": saved.items})

    def submit(self, request: Request, batch: str) -> Response:
        """Hand in a batch; an incomplete one is refused, naming the first unscored item.

        Called by the page's script, which sends the CSRF token in a header and can then show that item.
        """
        judge = signed_in(request).name
        sheet = self._desk.sheet(batch, judge)
        missing = [] if sheet.handed_in else unscored(sheet)
        if missing:
            verb = "is" if len(missing) == 1 else "are"
            message = f"{len(missing)} of {len(sheet.items)} items {verb} not scored completely"
            error = {"code": "invalid_input", "message": message, "problems": []}
            return _json({"error": error, "first": missing[0].slot}, 422)
        if not sheet.handed_in:
            self._desk.submit(batch, judge)
        return RedirectResponse(batch_path(batch, "report"), 303)

    def report(self, request: Request, batch: str) -> Response:
        judge = signed_in(request).name
        applied = self._desk.report(batch, judge)
        waiting = self._desk.waiting(judge)
        return self._render(
            request,
            "judging_report.html",
            report=judging_report(applied),
            levels={one.name: levels(one) for one in self._desk.sheet(batch, judge).criteria},
            waiting=waiting,
            sizes=sizes_for(waiting),
        )

    def _waiting(self, request: Request, experiment: str | None, notice: str = "") -> Response:
        visitor = signed_in(request)
        waiting = self._desk.waiting(visitor.name, experiment if visitor.is_admin else None)
        takes = approximate_duration(seconds_for(waiting.candidates))
        sizes = sizes_for(waiting)
        return self._render(request, "judging.html", waiting=waiting, notice=notice, takes=takes, sizes=sizes)

    def _render(self, request: Request, template: str, **values: Any) -> Response:
        response = page(request, self._parts, template, batch_path=batch_path, **values)
        response.headers["Cache-Control"] = "no-store"
        return response


def router(parts: Parts) -> APIRouter:
    pages = Judging(parts)
    routes = APIRouter(include_in_schema=False)
    routes.add_api_route("/judging", pages.waiting, methods=["GET"])
    routes.add_api_route("/judging", pages.start, methods=["POST"])
    routes.add_api_route("/judging/{batch}", pages.batch, methods=["GET"])
    routes.add_api_route("/judging/{batch}/items.json", pages.items, methods=["GET"])
    routes.add_api_route("/judging/{batch}/items/{slot}", pages.save, methods=["PATCH"])
    routes.add_api_route("/judging/{batch}/submit", pages.submit, methods=["POST"])
    routes.add_api_route("/judging/{batch}/report", pages.report, methods=["GET"])
    return routes


def batch_path(batch: str, *below: str) -> str:
    return "/".join(["/judging", *(quote(part, safe="") for part in (batch, *below))])


def sizes_for(waiting: Waiting) -> list[Size]:
    """Return the sizes to choose from, the smallest first.

    The first batch of a new judge has one size, and so has the next batch of a decision.
    """
    if waiting.items is not None:
        return [Size(FIRST_BATCH, waiting.items, approximate_duration(seconds_for(waiting.items)))]
    found: list[Size] = []
    for value in (FIRST_BATCH,) if waiting.is_new else SIZES:
        if not found or mix_for(found[-1].value, is_new=False).candidates < waiting.candidates:
            items = sum(fitting_mix(value, waiting.candidates, waiting.is_new))
            found.append(Size(value, items, approximate_duration(seconds_for(items))))
    return found


def approximate_duration(seconds: float) -> str:
    """Format a rounded duration: 40 min, 1 h 10 min."""
    minutes = max(1, round(seconds / 60))
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(5 * round(minutes / 5), 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


def _json(data: object, status: int = 200) -> Response:
    return Response(
        json_text(data, indent=None), status, media_type="application/json", headers={"Cache-Control": "no-store"}
    )
