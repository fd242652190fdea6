"""What the API is made of."""

from dataclasses import dataclass

from tipbench.admin.boards import Boards
from tipbench.admin.judging import JudgingDesk
from tipbench.admin.recommender import RecommenderRoom
from tipbench.admin.run_requests import RunRequests
from tipbench.runners.interface import Runner
from tipbench.web.tokens import Tokens


@dataclass(frozen=True)
class Parts:
    boards: Boards
    requests: RunRequests
    runner: Runner
    desk: JudgingDesk
    tokens: Tokens
    recommender: RecommenderRoom
