"""The recommender at a glance: the live policy, the last gate, the shadows; the priors, and all promotions."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import Response

from tipbench.core.errors import TipbenchError
from tipbench.recommender.shadows.statistics import ShadowDay
from tipbench.server.ui import urls
from tipbench.server.ui.pages import Parts, page
from tipbench.server.views.recommender import WITH_PRIORS

MENU = (urls.RECOMMENDER, "Recommender")

T = TypeVar("T")


class LoadResult(NamedTuple):
    """What was loaded, or why that failed; the rest of the page is shown anyway."""

    found: object
    problem: str = ""


def router(parts: Parts) -> APIRouter:
    pages = APIRouter(include_in_schema=False)
    recommender = parts.recommender

    @pages.get(urls.RECOMMENDER)
    def overview(request: Request) -> Response:
        return page(
            request,
            parts,
            "recommender.html",
            history=_load(recommender.promotions.history),
            gates=_load(recommender.gates.lines),
            shadows=_load(lambda: newest_of_each(recommender.shadows.read())),
            active=[one for one in recommender.simulations.newest(limit=50) if not one.job.ended],
        )

    @pages.get(urls.PROMOTIONS)
    def promotions(request: Request) -> Response:
        return page(request, parts, "promotions.html", history=recommender.promotions.history())

    @pages.get(urls.PRIORS)
    def priors(request: Request) -> Response:
        found = recommender.priors.read()
        return page(request, parts, "priors.html", priors=found, policies=WITH_PRIORS)

    @pages.get(urls.SHADOWS)
    def shadows(request: Request) -> Response:
        return page(request, parts, "shadows.html", days=recommender.shadows.read())

    return pages


def newest_of_each(days: list[ShadowDay]) -> list[ShadowDay]:
    """Return the last day of every shadow, given days with the newest first."""
    found: dict[str, ShadowDay] = {}
    for day in days:
        found.setdefault(day.shadow, day)
    return list(found.values())


def _load(read: Callable[[], T]) -> LoadResult:
    try:
        return LoadResult(read())
    except TipbenchError as error:
        return LoadResult(None, str(error))
