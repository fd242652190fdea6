"""What the pages are made from. They know interfaces and nothing of where the data lies."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from fastapi import Request

from tipbench.admin.boards import Boards
from tipbench.admin.judging import JudgingDesk
from tipbench.admin.run_requests import RunRequests
from tipbench.runners.interface import Runner


class InvitedJudge(Protocol):
    """Somebody who may judge, and nothing else."""

    @property
    def name(self) -> str: ...

    @property
    def created_ms(self) -> int: ...

    @property
    def last_seen_ms(self) -> int | None: ...


class JudgeTokens(Protocol):
    """Who else may come in. Raises InvalidInput for a name that can't be taken, or that nobody has."""

    def judges(self) -> Sequence[InvitedJudge]: ...

    def invite(self, name: str) -> str:
        """The token, which is told this once."""
        ...

    def revoke(self, name: str) -> None: ...


@dataclass(frozen=True)
class Parts:
    boards: Boards
    requests: RunRequests
    runner: Runner
    desk: JudgingDesk
    tokens: JudgeTokens
    csrf: Callable[[Request], str]  # the token that a request of this visitor must carry
    mlflow_run: Callable[[str, str], str]  # experiment's id, run's id → its page in MLflow
    address: str  # of the store, for show
    clock: Callable[[], float] = time.time
