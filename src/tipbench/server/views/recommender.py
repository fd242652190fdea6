"""The recommender's data for API and pages, and the simulations that they can start."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from tipbench.core.errors import TipbenchError
from tipbench.core.paths import signals_folder
from tipbench.core.settings import Settings
from tipbench.recommender.policies.catalog import SERVED, prior_of, takes_prior
from tipbench.recommender.prior.interface import PriorRecord, load_priors
from tipbench.recommender.promotion.evidence import GateSearch, promotion
from tipbench.recommender.promotion.interface import Act, live_history
from tipbench.recommender.shadows.statistics import ShadowStatisticsReader
from tipbench.recommender.store.moving import open_store
from tipbench.server.jobs.simulation_asked import built_in_world
from tipbench.server.jobs.simulations import SimulationRunner
from tipbench.server.views.gates import Gates
from tipbench.server.views.replays import Replays
from tipbench.server.views.simulations import Simulations

WITH_PRIORS = tuple(name for name, policy in SERVED.items() if takes_prior(policy))


@dataclass(frozen=True)
class History:
    live: str
    acts: tuple[Act, ...]  # newest first


class Promotions:
    """The live policy, its history, and whether another may follow it, read from the store in the settings.

    The store is opened only briefly, so that moving it never has to wait.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def history(self) -> History:
        with closing(open_store(self._settings)) as store:
            acts = store.promotions.history()
            return History(live_history(acts, store.promotions.address)[-1], acts[::-1])

    def live(self) -> str:
        return self.history().live

    def why_not(self, policy: str, gate_id: str, at_ms: int) -> str:
        """Return why this gate does not allow the policy to go live now; empty if it does. Changes nothing."""
        try:
            with closing(open_store(self._settings)) as store:
                search = GateSearch(self._settings.home, built_in_world(), gate_id=gate_id)
                promotion(policy, store, search, at_ms)
        except TipbenchError as error:
            return str(error)
        return ""


@dataclass(frozen=True)
class StoredPriors:
    live: str | None  # digest of the live policy's prior
    records: list[PriorRecord]  # those of the newest decisions first
    problems: list[str]  # what is wrong with those that can't be read

    @property
    def candidates(self) -> list[str]:
        """The policies that could go live with one of them."""
        return [f"{name}@{one.id}" for one in self.records for name in WITH_PRIORS]


class Priors:
    """The priors in the store of the settings, which is opened only briefly."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def read(self) -> StoredPriors:
        with closing(open_store(self._settings)) as store:
            live = live_history(store.promotions.history(), store.promotions.address)[-1]
            return StoredPriors(prior_of(live), *load_priors(store.priors))


@dataclass(frozen=True)
class RecommenderViews:
    simulations: Simulations
    gates: Gates
    replays: Replays
    promotions: Promotions
    priors: Priors
    shadows: ShadowStatisticsReader


def open_recommender_views(
    settings: Settings, clock: Callable[[], float], new_id: Callable[[], str]
) -> RecommenderViews:
    """Open all views of the recommender. Simulation jobs are managed from then on."""
    promotions = Promotions(settings)
    runner = SimulationRunner(settings.home, settings, clock, new_id)
    return RecommenderViews(
        simulations=Simulations(runner, promotions.live),
        gates=Gates(settings.home),
        replays=Replays(settings.home),
        promotions=promotions,
        priors=Priors(settings),
        shadows=ShadowStatisticsReader(signals_folder(settings.home)),
    )
