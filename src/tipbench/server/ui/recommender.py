"""The recommender at a glance: who is live, what the last gate said, what shadows do; and its history."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import Response

from tipbench.core.errors import TipbenchError
from tipbench.recommender.shadows.statistics import ShadowDay
from tipbench.server.ui import urls
from tipbench.server.ui.pages import Parts, page

MENU = (urls.RECOMMENDER, "Recommender")

T = TypeVar("T")


class Tried(NamedTuple):
    """What was found, or why nothing was: the rest of a page is worth showing all the same."""

    found: object
    problem: str = ""


def router(parts: Parts) -> APIRouter:
    pages = APIRouter(include_in_schema=False)
    room = parts.recommender

    @pages.get(urls.RECOMMENDER)
    def overview(request: Request) -> Response:
        return page(
            request,
            parts,
            "recommender.html",
            history=_tried(room.promotions.history),
            gates=_tried(room.gates.lines),
            shadows=_tried(lambda: newest_of_each(room.agreement.read())),
            active=[one for one in room.simulations.newest(limit=50) if not one.job.ended],
        )

    @pages.get(urls.PROMOTIONS)
    def promotions(request: Request) -> Response:
        return page(request, parts, "promotions.html", history=room.promotions.history())

    @pages.get(urls.SHADOWS)
    def shadows(request: Request) -> Response:
        return page(request, parts, "shadows.html", days=room.agreement.read())

    return pages


def newest_of_each(days: list[ShadowDay]) -> list[ShadowDay]:
    """The last day of every shadow; they come with the newest first."""
    found: dict[str, ShadowDay] = {}
    for day in days:
        found.setdefault(day.shadow, day)
    return list(found.values())


def _tried(ask: Callable[[], T]) -> Tried:
    try:
        return Tried(ask())
    except TipbenchError as error:
        return Tried(None, str(error))
