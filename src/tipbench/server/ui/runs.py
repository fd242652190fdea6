"""The runs of an experiment, paged, and a single run with its texts and scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from markupsafe import Markup

from tipbench.bench.compare.html.drawing import shortened
from tipbench.core.errors import InvalidInput
from tipbench.server.ui import urls
from tipbench.server.ui.pages import Parts, exact, page
from tipbench.server.ui.static_files import attachment
from tipbench.server.views.boards import STATES, CandidateScores, RunDetail, RunFilter, RunPage, state_of

PAGE_SIZE = 50
PROMPT_LIMIT = 20_000  # characters; prompts come from the suite, but a scenario in one can be long


@dataclass(frozen=True)
class FilterField:
    """A list to choose from; it includes the requested value even if no run has it."""

    name: str
    options: Markup
    chosen: str | None


@dataclass(frozen=True)
class Neighbours:
    """The URLs of the previous and the next page."""

    previous: str | None
    following: str | None


@dataclass(frozen=True)
class ScoredCandidate:
    """A text that a model wrote, and what judges gave it."""

    number: int
    text: str
    scores: Sequence[CandidateScores]


def router(parts: Parts) -> APIRouter:
    pages = APIRouter(include_in_schema=False)

    @pages.get(urls.RUNS)
    def runs(
        request: Request,
        experiment: str,
        model: str = "",
        prompt: str = "",
        scenario: str = "",
        state: str = "",
        offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
    ) -> Response:
        wanted = RunFilter(model or None, prompt or None, scenario or None, state or None)
        found = parts.boards.runs(experiment, wanted, offset, PAGE_SIZE)
        fields = (
            _field("model", found.levels.models, wanted.model),
            _field("prompt", found.levels.prompts, wanted.prompt),
            _field("scenario", found.levels.scenarios, wanted.scenario),
            _field("state", STATES, wanted.state),
        )
        chosen = {field.name: field.chosen for field in fields}
        return page(
            request,
            parts,
            "runs.html",
            experiment=experiment,
            found=found,
            fields=fields,
            filtered=any(chosen.values()),
            state_of=state_of,
            near=_neighbours(experiment, found, chosen),
        )

    @pages.get(urls.RUN)
    def run(request: Request, experiment: str, run: str) -> Response:
        detail = parts.boards.run(experiment, run)
        return page(
            request,
            parts,
            "run.html",
            experiment=experiment,
            detail=detail,
            cell=detail.cell,
            state=state_of(detail.cell),
            candidates=_candidates(detail),
            timings=_figures(detail),
            prompt_limit=PROMPT_LIMIT,
            mlflow=parts.mlflow_run(detail.experiment_id, detail.cell.run_id),
        )

    @pages.get(urls.ANSWER)
    def answer(experiment: str, run: str) -> Response:
        """Return the answer exactly as the model wrote it."""
        raw = parts.boards.run(experiment, run).raw
        if raw is None:
            raise InvalidInput(f"run '{run}' has no answer: it failed")
        written = raw.encode("utf-8", "backslashreplace")
        return Response(written, media_type="text/plain; charset=utf-8", headers=attachment(f"answer-{run}", "txt"))

    return pages


def _field(name: str, levels: Sequence[str], chosen: str | None) -> FilterField:
    choices = (*levels, *([chosen] if chosen and chosen not in levels else []))
    return FilterField(name, _options(choices, chosen) if chosen else _unselected_options(choices), chosen)


def _options(choices: Sequence[str], chosen: str | None = None) -> Markup:
    return Markup("").join(
        Markup('<option value="{}"{}>{}</option>\n').format(
            exact(choice), Markup(" selected") if choice == chosen else "", shortened(choice, 60)
        )
        for choice in choices
    )


_unselected_options = lru_cache(maxsize=16)(_options)  # hundreds of scenarios are half of the time of a page


def _neighbours(experiment: str, found: RunPage, chosen: Mapping[str, str | None]) -> Neighbours:
    before, after = max(0, found.offset - found.limit), found.offset + found.limit
    return Neighbours(
        urls.runs(experiment, **chosen, offset=before or None) if found.offset else None,
        urls.runs(experiment, **chosen, offset=after) if after < found.total else None,
    )


def _candidates(detail: RunDetail) -> list[ScoredCandidate]:
    return [
        ScoredCandidate(number + 1, text, [one for one in detail.scores if one.candidate == number])
        for number, text in enumerate(detail.candidates)
    ]


def _figures(detail: RunDetail) -> dict[str, float]:
    """Return the measured figures, without the scores."""
    return {
        name: value
        for name, value in sorted(detail.cell.metrics.items())
        if "/" in name and not name.startswith("judge/")
    }
