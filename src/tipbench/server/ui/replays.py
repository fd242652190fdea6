"""Replays of the decision log: the list, and a single replay with its verdict, estimates and their basis."""

import shlex

from fastapi import APIRouter, Request
from fastapi.responses import Response

from tipbench.recommender.replay.verdict import basis, estimate_text
from tipbench.server.ui import urls
from tipbench.server.ui.pages import Parts, page


def router(parts: Parts) -> APIRouter:
    pages = APIRouter(include_in_schema=False)
    records = parts.recommender.replays

    @pages.get(urls.REPLAYS)
    def replays(request: Request) -> Response:
        return page(request, parts, "replays.html", replays=records.lines())

    @pages.get(urls.REPLAYS + "/{replay_id}")
    def replay(request: Request, replay_id: str) -> Response:
        found = records.replay(replay_id)
        data = found.model_dump()
        again = shlex.join(("tipbench", "sim", "replay", "--candidate", str(found.candidate.get("name"))))
        return page(
            request,
            parts,
            "replay.html",
            replay=found,
            basis=basis(data),
            served=estimate_text(data["served"]) if data["served"] else "",
            rows=[
                (name, estimate_text(one["value"]), estimate_text(one["gain"], "+"))
                for name, one in data["estimates"].items()
            ],
            again=again,
        )

    return pages
