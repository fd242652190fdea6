"""What the server shows of the recommender, and what it can start for it."""

from collections.abc import Callable
from dataclasses import dataclass

from tipbench.core.paths import signals_folder
from tipbench.core.settings import Settings
from tipbench.recommender.shadows.statistics import ShadowStatisticsReader
from tipbench.server.jobs.simulations import SimulationRunner
from tipbench.server.views.gates import Gates
from tipbench.server.views.promotions import Promotions
from tipbench.server.views.replays import Replays
from tipbench.server.views.simulations import Simulations


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
