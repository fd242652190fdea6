"""What users did, row by row of a leaderboard."""

from pathlib import Path

import numpy as np
import pytest

from tests.recommender.served_events import Clock, a_request, source, tip
from tests.server.views.conftest import EXPERIMENT
from tests.server.views.served_rows import a_board, candidate_of, serve
from tipbench.core.paths import decisions_folder
from tipbench.recommender.log.decisions import DecisionLog
from tipbench.recommender.log.reward_statistics import RewardStatistics, RewardStatisticsReader
from tipbench.recommender.policies.catalog import POLICIES
from tipbench.recommender.records import Reward
from tipbench.server.views.boards import Boards, RunFilter
from tipbench.server.views.rewards import LEAST_EFFECTIVE, rewards_of
from tipbench.server.views.store_provider import StoreProvider
from tipbench.statistics.bounded import bounded_interval

BOARD = a_board()
GOOD, POOR = (row.cells for row in BOARD.grid.rows)


def earnings(folder: Path) -> RewardStatistics:
    return RewardStatisticsReader(folder).read()


def made(rewards: list[float], users: list[int], propensities: list[float]) -> RewardStatistics:
    """Of the good row's first run."""
    return RewardStatistics(
        sources=(candidate_of(GOOD[0]).source,),  # type: ignore[arg-type]  # it has one
        source=np.zeros(len(rewards), dtype=np.int32),
        user=np.array(users, dtype=np.int32),
        reward=np.array(rewards),
        propensity=np.array(propensities),
        rewards_without_decision=0,
    )


def test_rows_stand_in_the_leaderboards_order_with_what_they_earned(tmp_path: Path) -> None:
    log = serve(
        tmp_path,
        ("u1", candidate_of(POOR[0]), 1.0),
        ("u1", candidate_of(POOR[1]), -0.5),
        ("u2", candidate_of(POOR[0]), None),
        ("u2", candidate_of(GOOD[0]), 0.0),
    )
    found = rewards_of(BOARD, earnings(log))
    assert [(row.rank, row.row.model) for row in found.rows] == [(1, "good"), (2, "poor")]
    good, poor = found.rows
    assert (poor.served, poor.users, poor.rewarded, poor.completed) == (3, 2, 2, 1)
    assert (poor.mean, poor.completed_share) == (0.25, 0.5)
    assert (good.served, good.mean, good.completed_share) == (1, 0.0, 0.0)
    assert (found.served, found.users, found.rewarded) == (4, 2, 3)
    assert (found.elsewhere, found.elsewhere_runs, found.without_source, found.rewards_without_decision) == (0, 0, 0, 0)


def test_rows_that_nobody_was_served_are_not_there(tmp_path: Path) -> None:
    log = serve(tmp_path, ("u1", candidate_of(POOR[0]), None))
    [row] = rewards_of(BOARD, earnings(log)).rows
    assert (row.rank, row.rewarded, row.mean, row.interval, row.completed_share) == (2, 0, None, None, None)
    assert not rewards_of(BOARD, earnings(tmp_path / "none")).rows


def test_what_is_of_no_row_is_counted_apart(tmp_path: Path) -> None:
    known = candidate_of(GOOD[0])
    assert known.source
    log = serve(
        tmp_path,
        ("u1", tip(1, source(1)), 1.0),
        ("u2", tip(1, source(1)), 1.0),
        ("u1", tip(2, known.source.model_copy(update={"cell": "0" * 64})), 1.0),
        ("u1", tip(3), 1.0),
        ("u1", known, 1.0),
    )
    found = rewards_of(BOARD, earnings(log))
    assert (found.served, found.users, found.elsewhere, found.elsewhere_runs, found.without_source) == (1, 1, 3, 2, 1)


def test_a_cell_may_be_named_by_the_beginning_of_its_key(tmp_path: Path) -> None:
    known = candidate_of(GOOD[0])
    assert known.source
    short = known.source.model_copy(update={"cell": known.source.cell[:12]})
    found = rewards_of(BOARD, earnings(serve(tmp_path, ("u1", tip(1, short), 1.0))))
    assert (found.served, found.elsewhere) == (1, 0)


def test_the_interval_takes_users_for_what_is_independent() -> None:
    alike = [1.0] * 20 + [-1.0] * 20 + [1.0] * 20 + [-1.0] * 20
    by_user = [number // 20 for number in range(80)]
    [row] = rewards_of(BOARD, made(alike, by_user, [0.5] * 80)).rows
    assert row.interval == bounded_interval(alike, -1, 1, by_user)
    [each_its_own] = rewards_of(BOARD, made(alike, list(range(80)), [0.5] * 80)).rows
    assert each_its_own.interval
    assert row.interval
    widths = [one.high - one.low for one in (each_its_own.interval, row.interval)]
    assert widths[1] > 3 * widths[0]


def test_a_weighted_mean_is_shown_from_a_sample_that_tells_something() -> None:
    count = LEAST_EFFECTIVE
    [row] = rewards_of(BOARD, made([1.0] * count, list(range(count)), [0.5] * count)).rows
    assert (row.weighted.rewards, row.weighted.mean) == (count, 1.0)
    assert row.weighted.effective == pytest.approx(count)
    uneven = [0.005] + [0.9] * (count - 1)
    [row] = rewards_of(BOARD, made([1.0] * count, list(range(count)), uneven)).rows
    assert row.weighted.mean is None
    assert row.weighted.effective < 5


def test_choices_that_left_nothing_to_chance_have_no_weight(tmp_path: Path) -> None:
    log = serve(tmp_path, ("u1", candidate_of(GOOD[0]), 1.0), policy="linucb")
    [row] = rewards_of(BOARD, earnings(log)).rows
    assert (row.mean, row.weighted.rewards, row.weighted.effective, row.weighted.mean) == (1.0, 0, 0.0, None)


def test_weighting_takes_out_what_the_policy_preferred(tmp_path: Path) -> None:
    """Two runs of one row: users like one of them, the policy finds out, and the plain mean rises with it."""
    liked, disliked = (
        candidate_of(cell).model_copy(update={"len_chars": length}) for cell, length in ((GOOD[0], 900), (GOOD[1], 5))
    )
    policy, log = POLICIES["egreedy"], DecisionLog(tmp_path, Clock())
    state, random = policy.new_state(), np.random.default_rng(3)
    for number in range(3_000):
        request = a_request(f"u{number % 50}", f"e{number}", [liked, disliked])
        choice = policy.choose(state, request, random, 0)
        log.log_decision(policy, request, choice, state.n, number)
        reward = 1.0 if choice.position == 0 else -1.0
        policy.learn(state, choice.seen, reward, number)
        log.log_reward(policy.name, Reward(user_id=request.user_id, event_id=request.event_id, reward=reward), True)
    log.close()
    [row] = rewards_of(BOARD, earnings(tmp_path)).rows
    assert row.mean
    assert row.mean > 0.8
    assert row.weighted.mean == pytest.approx(0.0, abs=0.35)
    assert LEAST_EFFECTIVE <= row.weighted.effective < 1_000


def test_the_server_reads_the_log_of_its_home(boards: Boards, stores: StoreProvider) -> None:
    assert not boards.rewards(EXPERIMENT).rows
    cell = boards.runs(EXPERIMENT, RunFilter(model="scripted/b"), 0, 1).cells[0]
    log = serve(stores.settings.home / "recommender", ("u1", candidate_of(cell), 1.0))
    assert log == decisions_folder(stores.settings.home)
    [row] = boards.rewards(EXPERIMENT).rows
    assert (row.row.model, row.rewarded, row.mean) == ("scripted/b", 1, 1.0)
