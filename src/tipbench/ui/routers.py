"""All pages."""

from fastapi import APIRouter

from tipbench.ui import entrance, experiments, jobs, judges, judging, leaderboard, run_form, runs
from tipbench.ui.parts import Parts

_PAGES = (entrance, experiments, leaderboard, runs, run_form, jobs, judging, judges)


def routers(parts: Parts) -> list[APIRouter]:
    return [page.router(parts) for page in _PAGES]
