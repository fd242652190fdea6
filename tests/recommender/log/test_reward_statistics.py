"""Decisions and rewards come together, whatever order they are read in and however often they stand in the log."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.recommender.served_events import Clock, Serving, source, tip
from tipbench.core.errors import Conflict, StateDamaged
from tipbench.core.paths import decisions_folder
from tipbench.recommender.log.reward_statistics import RewardStatistics, RewardStatisticsReader
from tipbench.recommender.log.segmented_log import SegmentLog, entries, segments
from tipbench.recommender.store.files import FileStore
from tipbench.recommender.store.interface import Key, Transaction

A, B = tip(1, source(1)), tip(2, source(2))


def read(folder: Path) -> RewardStatistics:
    return RewardStatisticsReader(folder).read()


def rewards_by_run(earnings: RewardStatistics) -> dict[str, list[float]]:
    """In order; nothing for what got none."""
    found: dict[str, list[float]] = {}
    for number, reward in zip(earnings.source.tolist(), earnings.reward.tolist(), strict=True):
        run = earnings.sources[number].run_id if number >= 0 else ""
        found.setdefault(run, []).extend([] if np.isnan(reward) else [reward])
    return {run: sorted(rewards) for run, rewards in found.items()}


def test_rewards_go_to_the_run_that_the_chosen_one_came_from(tmp_path: Path) -> None:
    one = Serving(tmp_path, Clock())
    one.serve("u1", "e1", [A])
    one.serve("u1", "e2", [B])
    one.serve("u2", "e1", [A])
    one.serve("u2", "e3", [tip(3)])
    one.reward("u1", "e1", 1.0)
    one.reward("u2", "e1", -0.5)
    one.reward("u2", "e3", 0.0)
    found = read(one.log)
    assert rewards_by_run(found) == {source(1).run_id: [-0.5, 1.0], source(2).run_id: [], "": [0.0]}
    assert found.sources == (source(1), source(2))
    assert found.user.tolist() == [0, 0, 1, 1]
    assert (found.without_source, found.rewards_without_decision) == (1, 0)


def test_nothing_was_served_where_there_is_no_log(tmp_path: Path) -> None:
    found = read(decisions_folder(tmp_path))
    assert (found.sources, len(found.source), found.without_source, found.rewards_without_decision) == ((), 0, 0, 0)


def test_the_same_event_of_two_policies_is_two_events(tmp_path: Path) -> None:
    one = Serving(tmp_path, Clock())
    for policy, reward in (("egreedy", 1.0), ("egreedy/v2", -1.0)):
        one.serve("u1", "e1", [A], policy)
        one.reward("u1", "e1", reward, policy)
    assert rewards_by_run(read(one.log)) == {source(1).run_id: [-1.0, 1.0]}


def test_propensities_are_those_of_choices_that_leave_something_to_chance(tmp_path: Path) -> None:
    one = Serving(tmp_path, Clock())
    one.serve("u1", "e1", [A, B])
    one.serve("u1", "e2", [A, B], "linucb")
    found = read(one.log)
    assert found.propensity[0] == pytest.approx(0.5)  # nothing is known yet, so they tie
    assert np.isnan(found.propensity[1])


@pytest.mark.parametrize("propensity", [b"0.0", b"-0.5", b"1.5", b"NaN"])
def test_a_propensity_that_can_not_be_is_refused(tmp_path: Path, propensity: bytes) -> None:
    one = Serving(tmp_path, Clock())
    one.serve("u1", "e1", [A])
    [path] = segments(one.log)
    path.write_bytes(path.read_bytes().replace(b'"propensity":1.0', b'"propensity":' + propensity))
    with pytest.raises(StateDamaged, match=r"another kind of log .*a choice with the propensity"):
        read(path.parent)


def test_a_late_reward_is_what_a_user_did_all_the_same(tmp_path: Path) -> None:
    clock = Clock()
    one = Serving(tmp_path, clock)
    one.serve("u1", "e1", [A])
    clock.now += 30 * 86_400
    one.reward("u1", "e1", 1.0)
    assert [entry["learned"] for entry in entries(one.log) if entry["kind"] == "reward"] == [False]
    assert rewards_by_run(read(one.log)) == {source(1).run_id: [1.0]}


def test_a_reset_takes_nothing_back(tmp_path: Path) -> None:
    one = Serving(tmp_path, Clock())
    one.serve("u1", "e1", [A])
    one.reward("u1", "e1", 1.0)
    assert one.recommender.reset("u1") == ["egreedy"]
    assert rewards_by_run(read(one.log)) == {source(1).run_id: [1.0]}


class Killed(Exception):
    pass


class DyingStore(FileStore):
    """Ends, when it is told to, after the line is in the log and before the state is stored."""

    dies = False

    @contextmanager
    def transaction(self, key: Key, event_id: str | None = None) -> Iterator[Transaction]:
        with super().transaction(key, event_id) as transaction:
            yield transaction
            if self.dies:
                self.dies = False
                raise Killed


@pytest.mark.parametrize("older", ["the one that dies", "the one that takes over"])
def test_what_is_there_twice_after_a_kill_counts_as_it_was_answered(tmp_path: Path, older: str) -> None:
    store = DyingStore(tmp_path / "state", durable=False)
    clock = Clock()
    first, second = Serving(tmp_path, clock, store), Serving(tmp_path, clock)
    (second if older == "the one that takes over" else first).serve("u0", "e0", [tip(3)])  # has the first file by name
    store.dies = True
    with pytest.raises(Killed):
        first.serve("u1", "e1", [A])
    second.serve("u1", "e1", [B])  # the app had another tip to offer by then
    store.dies = True
    with pytest.raises(Killed):
        first.reward("u1", "e1", -1.0)
    second.reward("u1", "e1", 0.5)
    given = [entry["reward"] for entry in entries(first.log) if entry["kind"] == "reward"]
    assert given == ([0.5, -1.0] if older == "the one that takes over" else [-1.0, 0.5])
    assert rewards_by_run(read(first.log)) == {"": [], source(2).run_id: [0.5]}


def test_a_reward_may_be_read_before_its_decision(tmp_path: Path) -> None:
    early, late = Clock(1_800_000_000), Clock(1_800_009_000)
    first, second = Serving(tmp_path, early), Serving(tmp_path, late)
    first.serve("u1", "e0", [A])  # so that the first one's file is the first by name
    second.serve("u1", "e1", [B])
    early.now = late.now
    first.reward("u1", "e1", 1.0)
    assert [entry["kind"] for entry in entries(first.log)] == ["decision", "reward", "decision"]
    assert rewards_by_run(read(first.log)) == {source(1).run_id: [], source(2).run_id: [1.0]}


def test_a_torn_last_line_is_left_out_until_it_is_whole(tmp_path: Path) -> None:
    one = Serving(tmp_path, Clock())
    one.serve("u1", "e1", [A])
    one.reward("u1", "e1", 1.0)
    [path] = segments(one.log)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    reader = RewardStatisticsReader(one.log)
    assert rewards_by_run(reader.read()) == {source(1).run_id: []}
    path.write_bytes(whole)
    assert rewards_by_run(reader.read()) == {source(1).run_id: [1.0]}


def test_a_file_that_was_taken_away_counts_no_more_and_its_rewards_stand_alone(tmp_path: Path) -> None:
    clock = Clock()
    first = Serving(tmp_path, clock)
    first.serve("u1", "e1", [A])
    clock.now += 10
    second = Serving(tmp_path, clock)
    second.reward("u1", "e1", 1.0)
    second.serve("u2", "e2", [B])
    reader = RewardStatisticsReader(first.log)
    assert rewards_by_run(reader.read()) == {source(1).run_id: [1.0], source(2).run_id: []}
    segments(first.log)[0].unlink()
    for found in (reader.read(), read(first.log)):
        assert rewards_by_run(found) == {source(2).run_id: []}
        assert found.rewards_without_decision == 1


@pytest.mark.parametrize(
    "entry",
    [
        {"schema": 99, "kind": "decision"},
        {"kind": "reward"},
        {"schema": 1, "kind": "reward", "at_ms": 1},
        {"schema": 1, "kind": "reward", "at_ms": 1, "policy": "p", "user_id": "u", "event_id": "e", "reward": "much"},
    ],
)
def test_a_line_of_something_else_is_refused_with_its_file(tmp_path: Path, entry: dict[str, object]) -> None:
    log = SegmentLog(tmp_path, lambda: 0.0)
    log.append(entry)
    log.close()
    reader = RewardStatisticsReader(tmp_path)
    for _ in range(2):
        with pytest.raises(StateDamaged, match=r"19700101T000000-\d+-0001.jsonl contains a line of another kind"):
            reader.read()


@dataclass(frozen=True)
class Step:
    process: int
    user: str
    event: str
    offered: int
    reward: float | None
    read_state: bool  # whether somebody reads the log after it


STEPS = st.lists(
    st.builds(
        Step,
        st.integers(0, 1),
        st.sampled_from(["u1", "u2"]),
        st.sampled_from(["e1", "e2", "e3"]),
        st.integers(0, 3),
        st.sampled_from([None, -1.0, 0.0, 1.0]),
        st.booleans(),
    ),
    max_size=12,
)


@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
def test_whatever_happens_reading_on_comes_to_the_same_as_reading_anew(steps: list[Step]) -> None:
    tips = [tip(0), *(tip(number, source(number)) for number in range(1, 4))]
    with TemporaryDirectory() as folder:
        clock = Clock()
        serving = [Serving(Path(folder), clock) for _ in range(2)]
        reader = RewardStatisticsReader(serving[0].log)
        served: dict[tuple[str, str], int] = {}
        rewarded: dict[tuple[str, str], float] = {}
        for step in steps:
            key = (step.user, step.event)
            if served.setdefault(key, step.offered) == step.offered:
                serving[step.process].serve(*key, [tips[step.offered]])
            if step.reward is not None and rewarded.setdefault(key, step.reward) == step.reward:
                serving[1 - step.process].reward(*key, step.reward)
            elif step.reward is not None:
                with pytest.raises(Conflict):
                    serving[step.process].reward(*key, step.reward)
            if step.read_state:
                reader.read()
        expected: dict[str, list[float]] = {}
        for key, number in served.items():
            run = source(number).run_id if number else ""
            expected.setdefault(run, []).extend([rewarded[key]] if key in rewarded else [])
        for found in (reader.read(), read(serving[0].log)):
            assert rewards_by_run(found) == {run: sorted(rewards) for run, rewards in expected.items()}
