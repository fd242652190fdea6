"""All pages."""

from fastapi import APIRouter

from tipbench.server.ui import (
    entrance,
    experiments,
    gates,
    jobs,
    judges,
    judging,
    leaderboard,
    recommender,
    replays,
    run_form,
    runs,
    simulations,
)
from tipbench.server.ui.pages import Parts

_PAGES = (
    *(entrance, experiments, leaderboard, runs, run_form, jobs, judging, judges),
    *(recommender, simulations, gates, replays),
)


def routers(parts: Parts) -> list[APIRouter]:
    return [page.router(parts) for page in _PAGES]
