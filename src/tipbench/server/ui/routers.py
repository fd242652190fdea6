"""All pages, and the menu that leads to them."""

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
    urls,
)
from tipbench.server.ui.pages import Parts

_PAGES = (
    *(entrance, experiments, leaderboard, runs, run_form, jobs, judging, judges),
    *(recommender, simulations, gates, replays),
)


# A page that has a MENU, which is its path and its name there, is in the menu of admins.
ADMIN_MENU = (*(page.MENU for page in _PAGES if hasattr(page, "MENU")), (urls.MLFLOW, "MLflow"))
JUDGE_MENU = (judging.MENU,)


def routers(parts: Parts) -> list[APIRouter]:
    return [page.router(parts) for page in _PAGES]
