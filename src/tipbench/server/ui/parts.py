"""What the pages are made from. They know interfaces and nothing of where the data lies."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from fastapi import Request

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
    csrf: Callable[[Request], str]  # the token that a request of this visitor must carry
    mlflow_run: Callable[[str, str], str]  # experiment's id, run's id → its page in MLflow
    address: str  # of the store, for show
    clock: Callable[[], float] = time.time
