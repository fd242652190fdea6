"""All pages, and the menus that link to them."""

from fastapi import APIRouter

from tipbench.server.ui import (
    decisions,
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
    suites,
    urls,
)
from tipbench.server.ui.pages import Parts

_PAGES = (
    *(entrance, experiments, decisions, leaderboard, runs, run_form, jobs, suites, judging, judges),
    *(recommender, simulations, gates, replays),
)


# A page module with a MENU (its path and label) is in the admins' menu.
ADMIN_MENU = (*(page.MENU for page in _PAGES if hasattr(page, "MENU")), (urls.MLFLOW, "MLflow"))
JUDGE_MENU = (judging.MENU,)


def routers(parts: Parts) -> list[APIRouter]:
    return [page.router(parts) for page in _PAGES]
