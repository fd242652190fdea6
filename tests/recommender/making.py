"""Requests, users and recommenders for tests."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tipbench.recommender.log.decisions import DecisionLog
from tipbench.recommender.policies.catalog import POLICIES
from tipbench.recommender.recommender import Recommender
from tipbench.recommender.records import Candidate, CategoryProfile, Context, Profile, Request, Reward
from tipbench.recommender.shadows.runner import Shadows
from tipbench.recommender.store.files import FileStore
from tipbench.recommender.store.interface import Store

CATEGORIES = ("inbox", "focus", "health", "planning", "rest")
NOON = 1_800_000_000.0


class Clock:
    """Stands still until it is told otherwise."""

    def __init__(self, now: float = NOON) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def candidates(count: int) -> tuple[Candidate, ...]:
    """Different from each other in everything that features are made of."""
    return tuple(
        Candidate(
            id=f"t{number}",
            category=CATEGORIES[number % len(CATEGORIES)],
            len_chars=40 + 37 * number,
            effort_min=5.0 + number % 7 * 8,
            hours_since_shown=None if number % 3 else 3.0 * number,
        )
        for number in range(count)
    )


def a_request(
    event_id: str = "e1",
    user_id: str = "u1",
    hour: float = 9.5,
    focus: str | None = "inbox",
    of: Sequence[Candidate] | None = None,
    profile: Profile | None = None,
) -> Request:
    return Request(
        user_id=user_id,
        event_id=event_id,
        context=Context(hour=hour, focus_category=focus),
        candidates=tuple(of or candidates(10)),
        profile_features=profile,
    )


def a_profile(**changes: Any) -> Profile:
    """What is known of `inbox`, with changes, and less of `rest`."""
    inbox = CategoryProfile(shown=12.0, completed=5.0, dismissed=2.0, mean_dwell_s=40.0, hour_sin=2.0, hour_cos=-1.0)
    rest = CategoryProfile(shown=3.0, completed=0.0)
    return Profile(categories={"inbox": inbox.model_copy(update=changes), "rest": rest})


def a_reward(event_id: str = "e1", reward: float = 0.5, user_id: str = "u1") -> Reward:
    return Reward(user_id=user_id, event_id=event_id, reward=reward)


def a_recommender(
    folder: Path,
    clock: Clock | None = None,
    store: Store | None = None,
    shadows: Shadows | None = None,
    live: str | Callable[[], str] = "egreedy",
) -> Recommender:
    """On files that nobody syncs, as a test needs no power cut."""
    clock = clock or Clock()
    return Recommender(
        POLICIES,
        live,
        store or FileStore(folder / "state", durable=False),
        DecisionLog(folder / "decisions", clock),
        clock,
        shadows or Shadows(),
    )
