"""What the server shows of the recommender, and what it can start for it."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from tipbench.core.errors import TipbenchError
from tipbench.core.paths import signals_folder
from tipbench.core.settings import Settings
from tipbench.recommender.promotion.evidence import GateSearch, promotion
from tipbench.recommender.promotion.interface import Act, live_history
from tipbench.recommender.shadows.statistics import ShadowStatisticsReader
from tipbench.recommender.store.moving import open_store
from tipbench.server.jobs.simulation_asked import built_in_world
from tipbench.server.jobs.simulations import SimulationRunner
from tipbench.server.views.gates import Gates
from tipbench.server.views.replays import Replays
from tipbench.server.views.simulations import Simulations

# Which policy is live, how it came to be, and whether another one may follow it.


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


@dataclass(frozen=True)
class RecommenderRoom:
    simulations: Simulations
    gates: Gates
    replays: Replays
    promotions: Promotions
    agreement: ShadowStatisticsReader


def open_room(settings: Settings, clock: Callable[[], float], new_id: Callable[[], str]) -> RecommenderRoom:
    """It has begun to look after simulations when it is there."""
    promotions = Promotions(settings)
    runner = SimulationRunner(settings.home, settings, clock, new_id)
    return RecommenderRoom(
        simulations=Simulations(runner, promotions.live),
        gates=Gates(settings.home),
        replays=Replays(settings.home),
        promotions=promotions,
        agreement=ShadowStatisticsReader(signals_folder(settings.home)),
    )
