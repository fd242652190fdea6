"""An experiment's leaderboard: the report's body with links to the runs behind it, and downloads of it."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from tipbench.bench.compare.html.page import as_html, report_values
from tipbench.bench.compare.leaderboard import prompt_label
from tipbench.bench.compare.leaderboard_row import LeaderboardRow
from tipbench.bench.compare.messages import as_csv
from tipbench.core.errors import InvalidInput
from tipbench.core.untrusted import printable
from tipbench.server.ui import urls
from tipbench.server.ui.forms import Form, only
from tipbench.server.ui.pages import Parts, page
from tipbench.server.ui.static_files import attachment
from tipbench.server.views import rewards_report
from tipbench.web.authentication import SignedIn

_MAX_REASON_LENGTH = 400  # characters, as in the API


def router(parts: Parts) -> APIRouter:
    pages = APIRouter(include_in_schema=False)

    @pages.get(urls.LEADERBOARD)
    def leaderboard(request: Request, experiment: str) -> Response:
        def runs_of(row: LeaderboardRow) -> str:
            return urls.runs(experiment, model=row.model, prompt=row.prompt)

        values = report_values(parts.boards.report(experiment), runs_of=runs_of)
        invited = [one.name for one in parts.tokens.judges()]
        return page(request, parts, "leaderboard.html", invited=invited, **values)

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

    @pages.get(urls.REPORT)
    def report_file(experiment: str) -> Response:
        return HTMLResponse(as_html(parts.boards.report(experiment)), headers=attachment(experiment, "html"))

    @pages.get(urls.JSON)
    def json_file(experiment: str) -> Response:
        found = parts.boards.leaderboard_json(experiment)
        return Response(found, media_type="application/json", headers=attachment(experiment, "json"))

    @pages.get(urls.CSV)
    def csv_file(experiment: str) -> Response:
        found = as_csv(parts.boards.leaderboard(experiment)).encode("utf-8", "backslashreplace")
        return Response(found, media_type="text/csv; charset=utf-8", headers=attachment(experiment, "csv"))

    return pages
