"""Which policy is live, how it came to be, and whether another one may follow it."""

from contextlib import closing
from dataclasses import dataclass

from tipbench.core.errors import TipbenchError
from tipbench.core.settings import Settings
from tipbench.recommender.promotion.evidence import GateSearch, promotion
from tipbench.recommender.promotion.interface import Act, live_history
from tipbench.recommender.store.catalog import open_store
from tipbench.server.built_in_world import built_in_world


@dataclass(frozen=True)
class History:
    live: str
    acts: tuple[Act, ...]  # the newest first


class Promotions:
    """Read from the store that the settings name. It is opened for a moment only: nobody who moves it has to wait."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def history(self) -> History:
        with closing(open_store(self._settings)) as store:
            acts = store.promotions.history()
            return History(live_history(acts, store.promotions.address)[-1], acts[::-1])

    def live(self) -> str:
        return self.history().live

    def why_not(self, policy: str, gate_id: str, at_ms: int) -> str:
        """Why this policy may not go live by this gate now; nothing where it may. Nothing is changed."""
        try:
            with closing(open_store(self._settings)) as store:
                search = GateSearch(self._settings.home, built_in_world(), gate_id=gate_id)
                promotion(policy, store.promotions, search, at_ms)
        except TipbenchError as error:
            return str(error)
        return ""
