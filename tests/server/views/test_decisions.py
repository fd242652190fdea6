"""Decisions behind pages and API: what is generated ahead, and what can't be started."""

from typing import Any

import pytest

from tests.server.ui.made_panel import MadeRunner, a_job
from tests.server.views.conftest import EXPERIMENT
from tipbench.core.errors import InvalidInput, NotFound
from tipbench.server.views.decisions import DecisionRules, Decisions
from tipbench.server.views.judging import JudgingDesk
from tipbench.server.views.run_requests import RunRequests
from tipbench.server.views.snapshots import SnapshotMemoryCache
from tipbench.server.views.store_provider import StoreProvider

NAME = "tip-pool-views"
ASKED = {"models": "scripted/a,scripted/b", "prompts": "v1", "n_tips": 1, "experiment": NAME}


@pytest.fixture
def runner() -> MadeRunner:
    return MadeRunner()


@pytest.fixture
def decisions(stores: StoreProvider, snapshots: SnapshotMemoryCache, runner: MadeRunner) -> Decisions:
    return Decisions(stores, snapshots, RunRequests(stores, snapshots), runner)


def test_a_start_generates_the_first_rounds(decisions: Decisions, runner: MadeRunner, stores: StoreProvider) -> None:
    found = decisions.start(ASKED, DecisionRules(good_enough=0.0, budget=50))
    assert found.round.verdict.says == "Nothing is judged yet: 2 rows are in."
    assert len(found.round.wanted_cells) == 24
    ((options, _, _),) = runner.started
    assert (options.experiment, options.mlflow_url, options.suite) == (NAME, stores.address, "tip-pool")


def test_scores_start_the_next_generation_but_never_two(
    decisions: Decisions, runner: MadeRunner, stores: StoreProvider
) -> None:
    decisions.start(ASKED, DecisionRules())
    experiment = stores.store().experiment(NAME)
    decisions.generate_ahead(experiment)
    assert len(runner.started) == 1, "one is queued already"
    runner.found = {"j1": a_job(state="finished", text=NAME)}
    decisions.generate_ahead(experiment)
    assert len(runner.started) == 2
    decisions.generate_ahead(stores.store().experiment(EXPERIMENT))
    assert len(runner.started) == 2, "not a decision"


def test_a_hand_in_is_not_lost_because_no_job_starts(
    decisions: Decisions, runner: MadeRunner, stores: StoreProvider
) -> None:
    decisions.start(ASKED, DecisionRules())
    runner.away = "nobody is there"
    decisions.generate_ahead(stores.store().experiment(NAME))


def test_a_stopped_one_offers_nothing_until_it_goes_on(
    decisions: Decisions, runner: MadeRunner, stores: StoreProvider, desk: JudgingDesk
) -> None:
    decisions.start(ASKED, DecisionRules())
    with stores.bench(NAME) as bench:
        bench.collect(only=bench.look().wanted_cells, **_options(runner))
    waiting = desk.waiting("lena", NAME)
    assert (waiting.candidates, waiting.items) == (8, 22)
    assert decisions.stop(NAME, "person").round.verdict.stopped == "an admin stopped it"
    assert desk.waiting("lena", NAME).candidates == 0
    assert desk.next_batch("lena", NAME) is None
    assert decisions.go_on(NAME, DecisionRules(budget=10)).round.budget == 10
    assert desk.waiting("lena", NAME).candidates == 0, "the budget is too small for a batch"
    decisions.go_on(NAME, DecisionRules(budget=100))
    batch = desk.next_batch("lena", NAME)
    assert batch is not None
    assert batch.items == 22


def _options(runner: MadeRunner) -> dict[str, Any]:
    return runner.started[0][0].model_dump(exclude={"experiment", "mlflow_url"})


def test_what_can_not_be_is_refused(decisions: Decisions, runner: MadeRunner) -> None:
    with pytest.raises(InvalidInput, match="claim: must be pool or new"):
        decisions.start(ASKED, DecisionRules(claim="all"))
    with pytest.raises(NotFound, match=f"experiment '{EXPERIMENT}' holds no decision"):
        decisions.get(EXPERIMENT)
    with pytest.raises(InvalidInput, match=f"'{EXPERIMENT}' belongs to suite 'tip'"):
        decisions.start({**ASKED, "experiment": EXPERIMENT}, DecisionRules())
    runner.is_local = False
    with pytest.raises(InvalidInput, match="decisions run on one machine"):
        decisions.start(ASKED, DecisionRules())
    assert runner.started == []
