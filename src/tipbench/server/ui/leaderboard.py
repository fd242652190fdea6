"""An experiment's leaderboard: the report's body with links to the runs behind it, its texts, and downloads of it."""

from collections.abc import Callable
from math import isfinite
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup
from pydantic import BaseModel, Field

from tipbench.bench.compare.html.page import Report, as_html, report_values, row_values
from tipbench.bench.compare.leaderboard import Leaderboard, prompt_label, row_label
from tipbench.bench.compare.leaderboard_row import LeaderboardRow
from tipbench.bench.compare.messages import as_csv
from tipbench.bench.compare.texts import TextFilter
from tipbench.core.errors import InvalidInput, TipbenchError
from tipbench.core.untrusted import printable, shown
from tipbench.server.ui import urls
from tipbench.server.ui.forms import Form, only
from tipbench.server.ui.pages import Parts, environment, page
from tipbench.server.ui.static_files import attachment
from tipbench.server.views import rewards_report
from tipbench.web.authentication import SignedIn

_MAX_REASON_LENGTH = 400  # characters, as in the API


class TextQuery(BaseModel):
    """Which texts somebody wants to see, as the forms send it; an empty field matches everything."""

    experiment: str
    scenario: str = ""
    model: str = ""
    prompt: str = ""
    score_from: str = ""
    score_to: str = ""
    a: str = ""  # labels of two rows to compare
    b: str = ""
    offset: int = Field(0, ge=0, le=10**9)

    @property
    def chosen(self) -> dict[str, str]:
        """The fields that are filled in."""
        given = self.model_dump(exclude={"experiment", "offset"})
        return {name: value for name, value in given.items() if value}

    def as_filter(self) -> TextFilter:
        """Convert the fields; raise InvalidInput for a value that can't be."""
        if bool(self.a) != bool(self.b):
            raise InvalidInput("it takes two variants to compare; choose the other one, too")
        return TextFilter(
            scenario=self.scenario or None,
            model=self.model or None,
            prompt=self.prompt or None,
            score_from=_score(self.score_from),
            score_to=_score(self.score_to),
            rows=(self.a, self.b) if self.a and self.b else None,
            offset=self.offset,
        )


def router(parts: Parts) -> APIRouter:
    pages = APIRouter(include_in_schema=False)

    @pages.get(urls.LEADERBOARD)
    def leaderboard(request: Request, experiment: str) -> Response:
        report, rendered = parts.boards.overview(experiment, _rendered)
        invited = [one.name for one in parts.tokens.judges()]
        return page(
            request,
            parts,
            "leaderboard.html",
            report=report,
            board=report.board,
            rendered_report=Markup(rendered),  # safe: its template escapes
            invited=invited,
            automatic=parts.requests.judges(),
        )

    @pages.get(urls.TEXTS)
    def texts(request: Request, query: Annotated[TextQuery, Query()]) -> Response:
        """Show the texts that match; to htmx only those, for a page that shows the earlier ones already."""
        board, found, problem = parts.boards.leaderboard(query.experiment), None, ""
        try:
            found = parts.boards.texts(query.experiment).page(query.as_filter())
        except InvalidInput as error:
            problem = str(error)
        values = {**row_values(board, *_links(query.experiment)), **_form_values(board, query), "problem": problem}
        template = "texts_more.html" if "hx-request" in request.headers and found else "texts.html"
        return page(request, parts, template, 422 if problem else 200, texts=found, **values)

    @pages.get(urls.REWARDS)
    def rewards(request: Request, experiment: str) -> Response:
        """Show what users did with the served rows; nothing if none was served."""
        found = parts.boards.rewards(experiment)
        return page(
            request, parts, "leaderboard_rewards.html", rewards=found, tell=rewards_report, prompt_label=prompt_label
        )

    @pages.post(urls.ACCEPT)
    def accept(request: Request, form: Form, visitor: SignedIn) -> Response:
        """Accept a batch whose judge drifted, so that it counts from now on."""
        why = printable(only(form, "why"), _MAX_REASON_LENGTH)
        if not why:
            problem = "A batch that is on hold counts only with a reason; give one."
            return page(request, parts, "problem.html", 422, problem=problem)
        try:
            parts.desk.accept(only(form, "batch"), visitor.name, why)
        except InvalidInput as error:
            return page(request, parts, "problem.html", 422, problem=str(error))
        return Response(status_code=204, headers={"HX-Redirect": urls.leaderboard(only(form, "experiment"))})

    @pages.post(urls.ASK)
    def ask(request: Request, form: Form) -> Response:
        """Make a batch for a judge, including what others have already scored."""
        judge = only(form, "judge")
        if judge not in [one.name for one in parts.tokens.judges()]:
            return page(request, parts, "problem.html", 422, problem="This judge is no longer invited.")
        try:
            batch = parts.desk.next_batch(judge, only(form, "experiment"))
        except InvalidInput as error:
            return page(request, parts, "problem.html", 422, problem=str(error))
        return page(request, parts, "judge_asked.html", judge=judge, batch=batch)

    @pages.post(urls.RUN_JUDGE)
    def run_judge(request: Request, form: Form) -> Response:
        """Start a job that has an automatic judge score what is pending."""
        try:
            options = parts.requests.validate_judge(only(form, "experiment"), only(form, "judge"))
            job = parts.runner.judge(options)
        except TipbenchError as error:
            return page(request, parts, "problem.html", 422, problem=str(error))
        return Response(status_code=204, headers={"HX-Redirect": urls.job(job.id)})

    @pages.post(urls.PUBLISH)
    def publish(request: Request, form: Form) -> Response:
        """Start a job that shows the experiment on MLflow's pages."""
        try:
            job = parts.runner.publish(parts.requests.validate_publish(only(form, "experiment")))
        except TipbenchError as error:
            return page(request, parts, "problem.html", 422, problem=str(error))
        return Response(status_code=204, headers={"HX-Redirect": urls.job(job.id)})

    @pages.get(urls.REPORT)
    def report_file(experiment: str) -> Response:
        return HTMLResponse(as_html(parts.boards.report(experiment)), headers=attachment(experiment, "html"))

    @pages.get(urls.JSON)
    def json_file(experiment: str) -> Response:
        found = parts.boards.leaderboard_json(experiment).content
        return Response(found, media_type="application/json", headers=attachment(experiment, "json"))

    @pages.get(urls.CSV)
    def csv_file(experiment: str) -> Response:
        found = as_csv(parts.boards.leaderboard(experiment)).encode("utf-8", "backslashreplace")
        return Response(found, media_type="text/csv; charset=utf-8", headers=attachment(experiment, "csv"))

    return pages


def _rendered(report: Report) -> str:
    """Render what is the same for every visitor: the report and the forms for its texts."""
    experiment = report.board.experiment
    values = report_values(report, *_links(experiment)) | _form_values(report.board, TextQuery(experiment=experiment))
    return environment().get_template("leaderboard_report.html").render(values)


def _score(text: str) -> float | None:
    try:
        score = float(text) if text.strip() else None
    except ValueError:
        score = float("nan")
    if score is not None and not isfinite(score):
        raise InvalidInput(f"{shown(text)} is no score; give a number")
    return score


def _links(experiment: str) -> tuple[Callable[[LeaderboardRow], str], Callable[[str], str]]:
    """Return the functions that link a row to its runs, and a text to its run."""
    return (
        lambda row: urls.runs(experiment, model=row.model, prompt=row.prompt),
        lambda run_id: urls.run(experiment, run_id),
    )


def _form_values(board: Leaderboard, query: TextQuery) -> dict[str, Any]:
    """Return what the forms for texts offer; a list includes the requested value even if there is no such text."""
    labels = [row_label(board, row) for row in board.rows]
    choices = {
        "scenario": board.grid.scenarios,
        "model": [row.model for row in board.rows],
        "prompt": [row.prompt for row in board.rows],
    }
    chosen = query.chosen
    return {
        "choices": {
            name: dict.fromkeys([*found, *filter(None, [chosen.get(name)])]) for name, found in choices.items()
        },
        "compared_labels": {"a": labels, "b": [*labels[1:], *labels[:1]]},
        "query": query,
    }
