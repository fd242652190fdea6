"""Shadows: what they would have shown arrives as a signal, and nobody who is served notices them."""

import random
import re
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.recommender.making import Clock, a_profile, a_recommender, a_request, a_reward
from tests.recommender.waiting import LONG_S, wait_until
from tipbench.core.errors import InvalidInput
from tipbench.recommender.features.v1 import V1
from tipbench.recommender.features.v2 import V2
from tipbench.recommender.log.segmented_log import entries
from tipbench.recommender.policies.choosing import EventRng
from tipbench.recommender.policies.egreedy import EGreedy
from tipbench.recommender.policies.interface import Choice, Generator, Policy
from tipbench.recommender.policies.ridge import Ridge
from tipbench.recommender.recommender import Recommender
from tipbench.recommender.records import Request
from tipbench.recommender.shadows.background import MOST_WAITING, THREADS, TIMEOUT_S, Counts
from tipbench.recommender.shadows.runner import SHADOWS, Shadow, Shadows, Signal, open_shadows
from tipbench.recommender.store.files import FileStore
from tipbench.recommender.store.interface import Key, UserState

NAME = "egreedy-v2-shadow"
POLICY = SHADOWS[NAME].policy


@dataclass(frozen=True)
class Faulty(EGreedy):
    """Does something else first."""

    name: str = "egreedy/v2"
    features: Any = V2
    first: Callable[[], object] = field(default=lambda: None)

    def choose(self, state: Ridge, request: Request, generator: Generator, at_ms: int) -> Choice:
        self.first()
        return super().choose(state, request, generator, at_ms)


@dataclass
class Served:
    """A recommender with one shadow, or none."""

    folder: Path
    recommender: Recommender
    shadows: Shadows

    @property
    def counts(self) -> Counts:
        return self.shadows.status()[0].counts

    def signals(self) -> list[dict[str, Any]]:
        return list(entries(self.folder / "signals"))

    def settled(self) -> None:
        wait_until(lambda: self.counts.in_flight == 0)


Serve = Callable[..., Served]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """`policy` takes the place of the shadow's own, which has much time; all is closed in the end."""
    made: list[Served] = []

    def served(name: str = "one", on: bool = True, policy: Policy[Any] = POLICY, timeout_s: float = LONG_S) -> Served:
        folder, clock, known = tmp_path / name, Clock(), {NAME: Shadow(policy)}
        store = FileStore(folder / "state", durable=False)
        shadows = open_shadows([NAME] if on else [], store, folder / "signals", clock, known, timeout_s)
        made.append(Served(folder, a_recommender(folder, clock, store, shadows), shadows))
        return made[-1]

    yield served
    for one in made:
        one.recommender.close()


def test_the_shadow_of_version_2_is_known_and_off(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    shadows = open_shadows([], FileStore(tmp_path / "state"), tmp_path / "signals", Clock())
    assert [(one.name, one.policy, one.on, one.counts) for one in shadows.status()] == [
        (NAME, "egreedy/v2", False, Counts())
    ]
    assert shadows.status() == Shadows().status()
    assert set(threading.enumerate()) <= before, "one of an earlier test may have ended meanwhile"
    shadows.close()
    assert not (tmp_path / "signals").exists()


def test_one_that_is_on_in_the_map_needs_no_name(tmp_path: Path) -> None:
    known = {NAME: Shadow(POLICY, on=True)}
    shadows = open_shadows([], FileStore(tmp_path / "state"), tmp_path / "signals", Clock(), known)
    assert [one.on for one in shadows.status()] == [True]
    shadows.close()


def test_an_unknown_name_is_told_with_the_known_ones(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with pytest.raises(
        InvalidInput, match=r"there is no shadow policy 'egreedy-v3-shadow'; known are: egreedy-v2-shadow"
    ):
        open_shadows([NAME, "egreedy-v3-shadow"], FileStore(tmp_path), tmp_path, Clock())
    assert set(threading.enumerate()) <= before


def test_a_signal_says_what_the_policy_would_have_shown(serve: Serve) -> None:
    one = serve()
    request = a_request(profile=a_profile())
    answer = one.recommender.score("egreedy", request)
    one.settled()
    (signal,) = one.signals()
    expected = POLICY.choose(POLICY.new_state(), request, EventRng(NAME, "u1", "e1"), 0)
    ids = [candidate.id for candidate in request.candidates]
    assert 0 <= signal.pop("latency_ms") < 1000 * LONG_S
    assert 0 <= signal.pop("waited_ms") < 1000 * LONG_S
    assert signal == {
        "schema": 1,
        "signal": "shadow:egreedy-v2-shadow",
        "at_ms": round(Clock().now * 1000),
        "event_id": "e1",
        "user_id": "u1",
        "policy": "egreedy/v2",
        "feature_version": "v2",
        "parameters": POLICY.parameters,
        "features": {"names": list(V2.names), "rows": V2.rows(request)},
        "candidates": ids,
        "scores": expected.scores.tolist(),
        "propensities": expected.propensities.tolist(),
        "chosen": ids[expected.position],
        "served": {"policy": "egreedy", "chosen": answer.chosen, "propensity": answer.propensity},
        "agrees": ids[expected.position] == answer.chosen,
        "counts": {
            "offered": 1,
            "published": 0,
            "dropped": {"full": 0, "late": 0, "failed": 0},
            "in_flight": 1,
        },
    }


def test_without_rewards_all_candidates_tie(serve: Serve) -> None:
    """Rewards go to what was served; agreement is chance, one in as many as there are candidates."""
    one = serve()
    for number in range(60):
        one.recommender.score("egreedy", a_request(f"e{number}", profile=a_profile()))
        one.recommender.reward("egreedy", a_reward(f"e{number}", 1.0))
    one.settled()
    signals = one.signals()
    assert [set(signal["scores"]) for signal in signals] == [{0.0}] * 60
    assert np.allclose([signal["propensities"] for signal in signals], 0.1)
    assert {signal["agrees"] for signal in signals} == {
        signal["chosen"] == signal["served"]["chosen"] for signal in signals
    }
    assert sum(signal["agrees"] for signal in signals) < 30


def test_only_what_the_live_policy_serves_is_offered_and_once(serve: Serve) -> None:
    one = serve()
    one.recommender.score("egreedy", a_request("e1"))
    one.recommender.score("egreedy", a_request("e1"))
    one.recommender.score("linucb", a_request("e2"))
    assert one.counts.offered == 1


def test_who_listens_in_this_process_hears_what_the_file_holds(serve: Serve) -> None:
    one = serve()
    heard: list[Signal] = []
    one.shadows.subscribe(heard.append)
    for number in range(3):
        one.recommender.score("egreedy", a_request(f"e{number}"))
    one.settled()
    assert [signal["event_id"] for signal in heard] == ["e0", "e1", "e2"]
    assert [signal["event_id"] for signal in one.signals()] == ["e0", "e1", "e2"]


def test_states_and_decisions_are_the_same_to_the_byte_with_a_shadow_and_without(serve: Serve) -> None:
    folders = []
    for name, on in (("with", True), ("without", False)):
        one = serve(name, on)
        for number in range(40):
            one.recommender.score("egreedy", a_request(f"e{number}", f"u{number % 3}", profile=a_profile()))
            one.recommender.reward("egreedy", a_reward(f"e{number}", 0.5, f"u{number % 3}"))
        one.settled()
        one.recommender.close()
        states = {
            path.name: re.sub(rb'"(revision|crc)":\d+', b"", path.read_bytes())  # they are made of the time
            for path in (one.folder / "state").rglob("*")
            if path.is_file()
        }
        folders.append((states, list(entries(one.folder / "decisions"))))
    assert folders[0] == folders[1]
    assert sorted(name for name in folders[0][0] if "egreedy" in name) == [f"u{user}_egreedy.json" for user in range(3)]


def test_a_state_that_was_put_there_for_it_is_read_and_left_as_it_is(serve: Serve, tmp_path: Path) -> None:
    one = serve()
    state = POLICY.new_state()
    for place in range(10):
        POLICY.learn(state, V2.matrix(a_request(profile=a_profile()))[place], place / 10, 0)
    with FileStore(one.folder / "state").transaction(Key("u1", NAME)) as transaction:
        transaction.put_state(UserState("v2", state.as_data()))
    path = one.folder / "state" / f"u1_{NAME}.json"
    before = path.read_bytes()
    request = a_request(profile=a_profile())
    one.recommender.score("egreedy", request)
    one.settled()
    expected = POLICY.choose(state, request, EventRng(NAME, "u1", "e1"), 0)
    assert one.signals()[0]["scores"] == expected.scores.tolist()
    assert len(set(one.signals()[0]["scores"])) == 10
    assert path.read_bytes() == before


def test_a_state_of_other_features_is_refused_and_counted(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    one = serve()
    with FileStore(one.folder / "state").transaction(Key("u1", NAME)) as transaction:
        transaction.put_state(UserState("v1", EGreedy("egreedy", V1).new_state().as_data()))
    one.recommender.score("egreedy", a_request())
    one.settled()
    assert one.counts == Counts(offered=1, failed=1)
    assert "the shadow egreedy-v2-shadow failed, and nothing was published: StateRefused" in caplog.text


def test_one_that_raises_is_counted_and_told_once_a_minute(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise ValueError("\x1b[2J no such column")

    one = serve(policy=Faulty(first=fail))
    for number in range(30):
        one.recommender.score("egreedy", a_request(f"e{number}"))
    one.settled()
    assert one.counts == Counts(offered=30, failed=30)
    assert len(caplog.messages) == 1
    assert "\x1b" not in caplog.text


def test_one_that_takes_300_ms_is_late_and_publishes_nothing(serve: Serve) -> None:
    one = serve(policy=Faulty(first=lambda: time.sleep(0.3)), timeout_s=TIMEOUT_S)
    one.recommender.score("egreedy", a_request())
    wait_until(lambda: one.counts.late == 1)
    one.recommender.close()
    (last,) = one.signals()
    assert last["signal"] == "shadow:egreedy-v2-shadow:counts"
    assert last["counts"] == {
        "offered": 1,
        "published": 0,
        "dropped": {"full": 0, "late": 1, "failed": 0},
        "in_flight": 0,
    }


def test_the_last_signal_tells_what_was_dropped(serve: Serve) -> None:
    hanging = threading.Event()
    one = serve(policy=Faulty(first=lambda: hanging.wait(LONG_S)))
    for number in range(MOST_WAITING + 20):
        one.recommender.score("egreedy", a_request(f"e{number}"))
    one.recommender.close()
    hanging.set()
    counts = one.signals()[-1]["counts"]
    assert counts["offered"] == MOST_WAITING + 20 == sum(counts["dropped"].values())


def test_signals_that_can_not_be_written_cost_no_answer_and_keep_nothing_from_closing(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    one = serve()
    (one.folder / "signals").write_text("in the way")
    answer = one.recommender.score("egreedy", a_request())
    one.settled()
    assert answer.chosen
    assert one.counts == Counts(offered=1, failed=1)
    one.recommender.close()
    failed, counts = caplog.messages
    assert "nothing was published: FileExistsError" in failed
    assert "Counts(offered=1, published=0, full=0, late=0, failed=1), can't be written: FileExistsError" in counts


class Hanging:
    """Hangs only while its own shadow's answers are timed, so that those of the others are not beside it."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.times = 0

    def __call__(self) -> None:
        self.times += not self.over.is_set()
        assert self.over.wait(LONG_S)


def test_whatever_a_shadow_does_answers_take_as_long_as_without(serve: Serve) -> None:
    """In turn, in one run. A busy machine may slow down one of them in one try, and hardly the same one in three."""
    hanging = Hanging()

    def fail() -> None:
        raise ValueError("no")

    served = {
        "none": serve("none", on=False),
        "healthy": serve("healthy", timeout_s=TIMEOUT_S),
        "hangs": serve("hangs", policy=Faulty(first=hanging), timeout_s=TIMEOUT_S),
        "raises": serve("raises", policy=Faulty(first=fail), timeout_s=TIMEOUT_S),
    }
    tries: list[dict[str, tuple[float, float]]] = []
    while len(tries) < 3 and not (tries and unchanged(tries[-1])):
        took: dict[str, list[float]] = {name: [] for name in served}
        for number in range(8):
            for name in random.Random(number).sample(sorted(served), len(served)):
                hanging.over.clear()
                took[name] += answering(served[name], f"e{len(tries)}-{number}")
                hanging.over.set()
                served[name].settled()
        tries.append(
            {name: (statistics.median(all), statistics.quantiles(all, n=20)[-1]) for name, all in took.items()}
        )
    assert unchanged(tries[-1]), tries
    assert served["healthy"].counts.published > 0
    assert hanging.times >= 8
    assert served["raises"].counts.failed > 0


def unchanged(took: Mapping[str, tuple[float, float]]) -> bool:
    """Medians within half as much again; the twentieth that took longest is mostly the machine's doing."""
    median, tail = took["none"]
    return all(a_median < 1.5 * median and a_tail < 3 * tail for a_median, a_tail in took.values())


def answering(served: Served, event: str) -> list[float]:
    """Seconds of some answers in a row, with pauses as users make them: a shadow works in between."""
    took = []
    for number in range(15):
        request = a_request(f"{event}-{number}", f"u{number}", profile=a_profile())
        begun = time.perf_counter()
        served.recommender.score("egreedy", request)
        took.append(time.perf_counter() - begun)
        time.sleep(0.002)
    return took


def test_offering_to_one_that_hangs_takes_microseconds(serve: Serve) -> None:
    """Against the answer itself, within one run."""
    hanging = threading.Event()
    one = serve(policy=Faulty(first=lambda: hanging.wait(LONG_S)), timeout_s=TIMEOUT_S)
    offering: list[float] = []
    original = one.shadows.offer

    def timed(served: Any) -> None:
        begun = time.perf_counter()
        original(served)
        offering.append(time.perf_counter() - begun)

    one.shadows.offer = timed  # type: ignore[method-assign]
    answering = []
    for number in range(200):
        begun = time.perf_counter()
        one.recommender.score("egreedy", a_request(f"e{number}", f"u{number}"))
        answering.append(time.perf_counter() - begun)
    hanging.set()
    assert statistics.median(offering) < 0.1 * statistics.median(answering)
    assert sum(thread.name.startswith("shadow") for thread in threading.enumerate()) <= THREADS
