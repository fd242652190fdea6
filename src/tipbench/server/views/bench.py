"""All views of the bench over one store and one runner, as pages, API and MCP use them."""

import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from tipbench.core.settings import Settings
from tipbench.server.jobs.interface import Runner
from tipbench.server.views.batches import Drafts
from tipbench.server.views.boards import Boards
from tipbench.server.views.decisions import Decisions
from tipbench.server.views.gauges import Gauges
from tipbench.server.views.judging import JudgingDesk
from tipbench.server.views.run_requests import RunRequests
from tipbench.server.views.snapshots import SnapshotMemoryCache
from tipbench.server.views.store_provider import StoreObserver, StoreProvider
from tipbench.server.views.suites import Suites


@dataclass(frozen=True)
class BenchViews:
    boards: Boards
    requests: RunRequests
    runner: Runner
    desk: JudgingDesk
    decisions: Decisions
    suites: Suites
    gauges: Gauges
    resources: ExitStack

    def close(self) -> None:
        """Close the runner, which leaves running jobs alone, the drafts and the store."""
        self.resources.close()


def open_bench_views(
    address: str,
    settings: Settings,
    runner: Runner,
    clock: Callable[[], float],
    new_id: Callable[[], str],
    observer: StoreObserver | None = None,
) -> BenchViews:
    """Open the views of the store at `address`; the runner is closed with them."""
    stores = StoreProvider(address, settings, clock, new_id, observer)
    gauges = Gauges(stores, runner)
    snapshots = SnapshotMemoryCache(stores)
    drafts = Drafts(settings.home / "server" / "drafts.db")
    requests = RunRequests(stores, snapshots, runner.is_local)
    decisions = Decisions(stores, snapshots, requests, runner)
    resources = ExitStack()
    for close in (stores.close, drafts.close, runner.close, gauges.close):  # in reverse order
        resources.callback(close)
    return BenchViews(
        boards=Boards(stores, snapshots),
        requests=requests,
        runner=runner,
        desk=JudgingDesk(stores, snapshots, drafts, decisions.generate_ahead),
        decisions=decisions,
        suites=Suites(stores),
        gauges=gauges,
        resources=resources,
    )


def new_id() -> str:
    """Return a new identifier for a batch, a job or a decision."""
    return uuid.uuid4().hex[:16]
