"""Which policy is live, asked with every request."""

import time
from collections.abc import Callable, Collection
from contextlib import closing
from typing import NamedTuple

from tipbench.core.errors import StateDamaged, StateRefused
from tipbench.core.settings import Settings
from tipbench.core.untrusted import shown
from tipbench.recommender.policies.catalog import SERVED
from tipbench.recommender.promotion.interface import Act, Promotions, live_history
from tipbench.recommender.store.moving import open_store


class _Seen(NamedTuple):
    mark: object
    acts: tuple[Act, ...]
    live: str
    until: float


class LivePolicy:
    """Reads the history again only when something was added to it. Safe for threads."""

    def __init__(
        self,
        promotions: Promotions,
        known: Collection[str] = SERVED.keys(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._promotions = promotions
        self._known = known
        self._clock = clock
        self._seen: _Seen | None = None

    def current(self) -> str:
        """Raises StateError rather than serve anything that nobody has promoted."""
        seen, now = self._seen, self._clock()
        if seen and now < seen.until:
            return seen.live
        mark, until = self._promotions.mark(), now + self._promotions.look_again_s
        if seen and mark == seen.mark:
            self._seen = seen._replace(until=until)
            return seen.live
        acts = self._promotions.history()
        live = live_history(acts, self._promotions.address)[-1]
        self._check(acts, live, seen.acts if seen else ())
        self._seen = _Seen(mark, acts, live, until)
        return live

    def _check(self, acts: tuple[Act, ...], live: str, before: tuple[Act, ...]) -> None:
        if acts[: len(before)] != before:
            raise StateDamaged(
                f"acts that were in {self._promotions.address} are not there any more; bring a backup of it back"
            )
        if live not in self._known:
            raise StateRefused(
                f"the policy {shown(live)} was promoted, and this tipbench knows {', '.join(self._known)}; install the "
                "tipbench that promoted it, or take it back: tipbench recommend rollback"
            )


def live_now(settings: Settings) -> str:
    """In the store that the settings name."""
    with closing(open_store(settings)) as store:
        return LivePolicy(store.promotions).current()
