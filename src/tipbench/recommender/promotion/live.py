"""The live policy, as looked up on every request."""

import time
from collections.abc import Callable, Collection
from contextlib import closing
from typing import NamedTuple

from tipbench.core.errors import StateDamaged, StateRefused
from tipbench.core.settings import Settings
from tipbench.core.untrusted import shown
from tipbench.recommender.policies.catalog import SERVED, name_of
from tipbench.recommender.promotion.interface import Act, Promotions, live_history
from tipbench.recommender.store.moving import open_store


class _CachedLive(NamedTuple):
    revision: object
    acts: tuple[Act, ...]
    live: tuple[str, ...]  # identities, the current one last
    until: float


class LivePolicy:
    """Caches the live policy, and reads the history again only when it has changed. Thread-safe."""

    def __init__(
        self,
        promotions: Promotions,
        known: Collection[str] = SERVED.keys(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._promotions = promotions
        self._known = known
        self._clock = clock
        self._cached: _CachedLive | None = None

    def current(self) -> str:
        """Return the live policy's identity; raise StateError rather than return one that was never promoted."""
        live = self._stack()[-1]
        if name_of(live) not in self._known:
            raise StateRefused(
                f"the policy {shown(live)} was promoted, but this version of tipbench only knows "
                f"{', '.join(self._known)}; install the version that promoted it, or roll it back: tipbench "
                "recommend rollback"
            )
        return live

    def identity(self, name: str) -> str:
        """Return the identity with which a policy is served by name: the last promoted one that was not rolled back.

        If it was never promoted, that is the policy without a prior.
        """
        return next((live for live in reversed(self._stack()) if name_of(live) == name), name)

    def _stack(self) -> tuple[str, ...]:
        cached, now = self._cached, self._clock()
        if cached and now < cached.until:
            return cached.live
        revision, until = self._promotions.revision(), now + self._promotions.poll_interval_s
        if cached and revision == cached.revision:
            self._cached = cached._replace(until=until)
            return cached.live
        acts = self._promotions.history()
        live = tuple(live_history(acts, self._promotions.address))
        self._check(acts, cached.acts if cached else ())
        self._cached = _CachedLive(revision, acts, live, until)
        return live

    def _check(self, acts: tuple[Act, ...], before: tuple[Act, ...]) -> None:
        if acts[: len(before)] != before:
            raise StateDamaged(
                f"entries that were in {self._promotions.address} are missing now; restore it from a backup"
            )


def live_now(settings: Settings) -> str:
    """Return the identity of the live policy in the store that the settings name."""
    with closing(open_store(settings)) as store:
        return LivePolicy(store.promotions).current()
