"""A recommender that serves tips which came from runs, for tests of what came of them."""

from collections.abc import Sequence
from pathlib import Path

from tipbench.recommender.log.decisions import DecisionLog
from tipbench.recommender.policies.catalog import POLICIES
from tipbench.recommender.recommender import Recommender
from tipbench.recommender.records import Candidate, Context, Request, Reward, Source
from tipbench.recommender.shadows.runner import Shadows
from tipbench.recommender.store.files import FileStore
from tipbench.recommender.store.interface import Store


class Clock:
    """A second later each time that it is asked."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        self.now += 1
        return self.now


def source(number: int) -> Source:
    return Source(run_id=f"{number:032x}", cell=f"{number:064x}")


def tip(number: int, of: Source | None = None) -> Candidate:
    return Candidate(id=f"t{number}", category="inbox", len_chars=10 * number, source=of)


def a_request(user: str, event: str, tips: Sequence[Candidate]) -> Request:
    return Request(user_id=user, event_id=event, context=Context(hour=9.0), candidates=tuple(tips))


class Serving:
    """One process that serves: several of them share a folder. Nothing is synced, as no test cuts the power."""

    def __init__(self, folder: Path, clock: Clock, store: Store | None = None) -> None:
        self.log = folder / "decisions"
        self.recommender = Recommender(
            POLICIES,
            "egreedy",
            store or FileStore(folder / "state", durable=False),
            DecisionLog(self.log, clock),
            clock,
            Shadows(),
        )

    def serve(self, user: str, event: str, tips: Sequence[Candidate], policy: str = "egreedy") -> str:
        """The chosen one's id."""
        return self.recommender.score(policy, a_request(user, event, tips)).chosen

    def reward(self, user: str, event: str, reward: float, policy: str = "egreedy") -> None:
        self.recommender.reward(policy, Reward(user_id=user, event_id=event, reward=reward))
