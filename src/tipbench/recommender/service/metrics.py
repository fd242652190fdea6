"""What the service counts of its recommender's work."""

import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Generic, Literal, TypeVar, get_args

from tipbench.recommender.observer import Observer, Status
from tipbench.web.metrics import Family, Metrics

_MAX_CATEGORIES = 100
_UNKNOWN = "unknown"  # the category of an event that was scored by a version that did not store it
_DECISIONS = Family("tipbench_decisions_total", "Candidates that were chosen, once an event.", ("policy",))
_REWARDS = Family(
    "tipbench_rewards_total",
    "Rewards that came in: learned, sent again, or too late to learn from.",
    ("policy", "status"),
)
_REWARDED = Family("tipbench_rewarded_total", "Rewards that were learned.", ("policy", "category"))
_POINTS = Family(
    "tipbench_reward_points_total", "Sum of the rewards that were learned, by sign.", ("policy", "category", "sign")
)
_SHADOW_CHOICES = Family(
    "tipbench_shadow_choices_total",
    "Choices of shadow policies, by whether they are what was served.",
    ("shadow", "agrees"),
)
_SHADOW_ERRORS = Family(
    "tipbench_shadow_errors_total", "Choices that a shadow policy failed to make, or dropped.", ("shadow",)
)
FAMILIES = (_DECISIONS, _REWARDS, _REWARDED, _POINTS, _SHADOW_CHOICES, _SHADOW_ERRORS)
_AGREES = {True: "true", False: "false"}
_Opened = TypeVar("_Opened")


class CountingObserver(Observer):
    def __init__(self, metrics: Metrics, policies: Iterable[str], shadows: Iterable[str]) -> None:
        """What is counted of these begins with 0, so that there is something to compare the first with."""
        self._metrics = metrics
        for policy in policies:
            metrics.count(_DECISIONS, policy, amount=0)
            for status in get_args(Status):
                metrics.count(_REWARDS, policy, status, amount=0)
        for shadow in shadows:
            metrics.count(_SHADOW_ERRORS, shadow, amount=0)
            for agrees in _AGREES.values():
                metrics.count(_SHADOW_CHOICES, shadow, agrees, amount=0)

    def transaction(
        self, operation: Literal["score", "reward"], opened: AbstractContextManager[_Opened]
    ) -> AbstractContextManager[_Opened]:
        return _Timed(operation, opened, self._metrics)

    def synced(self, seconds: float) -> None:
        self._metrics.observe_store("sync", seconds)

    def decided(self, policy: str) -> None:
        self._metrics.count(_DECISIONS, policy)

    def rewarded(self, policy: str, status: Status, category: str | None, reward: float) -> None:
        self._metrics.count(_REWARDS, policy, status)
        if status == "applied":
            name = _UNKNOWN if category is None else self._metrics.member("category", category, _MAX_CATEGORIES)
            self._metrics.count(_REWARDED, policy, name)
            if reward:
                sign = "positive" if reward > 0 else "negative"
                self._metrics.count(_POINTS, policy, name, sign, amount=abs(reward))

    def shadow_chose(self, shadow: str, agrees: bool) -> None:
        self._metrics.count(_SHADOW_CHOICES, shadow, _AGREES[agrees])

    def shadow_dropped(self, shadow: str) -> None:
        self._metrics.count(_SHADOW_ERRORS, shadow)


class _Timed(Generic[_Opened]):
    """A transaction, of which the time is taken that opening and storing it take, not what is done in between."""

    def __init__(self, operation: str, opened: AbstractContextManager[_Opened], metrics: Metrics) -> None:
        self._operation = operation
        self._opened = opened
        self._metrics = metrics
        self._open_s = 0.0

    def __enter__(self) -> _Opened:
        start = time.perf_counter()
        transaction = self._opened.__enter__()
        self._open_s = time.perf_counter() - start
        return transaction

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> bool | None:
        start = time.perf_counter()
        suppressed = self._opened.__exit__(kind, error, where)
        self._metrics.observe_store(self._operation, self._open_s + time.perf_counter() - start)
        return suppressed
