"""The objects that the API's routers are built from."""

from dataclasses import dataclass

from tipbench.server.jobs.interface import Runner
from tipbench.server.views.boards import Boards
from tipbench.server.views.decisions import Decisions
from tipbench.server.views.judging import JudgingDesk
from tipbench.server.views.recommender import RecommenderViews
from tipbench.server.views.run_requests import RunRequests
from tipbench.web.tokens import Tokens


@dataclass(frozen=True)
class Parts:
    boards: Boards
    requests: RunRequests
    runner: Runner
    desk: JudgingDesk
    decisions: Decisions
    tokens: Tokens
    recommender: RecommenderViews
