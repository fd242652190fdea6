"""What the API is made of."""

from dataclasses import dataclass

from tipbench.server.jobs.interface import Runner
from tipbench.server.views.boards import Boards
from tipbench.server.views.judging import JudgingDesk
from tipbench.server.views.recommender import RecommenderRoom
from tipbench.server.views.run_requests import RunRequests
from tipbench.web.tokens import Tokens


@dataclass(frozen=True)
class Parts:
    boards: Boards
    requests: RunRequests
    runner: Runner
    desk: JudgingDesk
    tokens: Tokens
    recommender: RecommenderRoom
