"""Shadows: policies that are asked beside the live one, after it has answered, and never get a reward.

What a shadow would have shown goes out as a signal, `shadow:` and its name, or is dropped and counted: the answer that
was served neither waits for it nor depends on it. A shadow's state has a key of its own, and is only ever read.
Nothing is learned without rewards, so all candidates tie: this shows that a policy can be served, not how good it is.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tipbench.core.errors import InvalidInput
from tipbench.core.untrusted import printable, shown
from tipbench.recommender.log.segmented_log import RateLimitedLog, SegmentLog
from tipbench.recommender.policies.catalog import SERVED
from tipbench.recommender.policies.interface import Choice, Policy
from tipbench.recommender.policies.ridge import EventRng
from tipbench.recommender.records import Request
from tipbench.recommender.shadows.background import LONGEST_S, BackgroundExecutor, Counts, Done
from tipbench.recommender.store.interface import Key, Store, known_state

SCHEMA = 1
Signal = Mapping[str, Any]
_log = logging.getLogger(__name__)


# Signals: what happened beside the answers, as lines of JSON in a folder, and for whoever listens in this process.


class Signals:
    def __init__(self, log: SegmentLog | None = None) -> None:
        """Without a log they are for listeners only."""
        self._log = log
        self._listeners: list[Callable[[Signal], None]] = []
        self._seldom = RateLimitedLog(_log)

    def subscribe(self, listener: Callable[[Signal], None]) -> None:
        """It is called in the thread that publishes. One that takes long costs later signals, and never an answer."""
        self._listeners.append(listener)

    def publish(self, name: str, at: float, **content: Any) -> None:
        """First to the log. A listener that raises is told of, and has received it all the same."""
        signal = {"schema": SCHEMA, "signal": name, "at_ms": round(at * 1000), **content}
        if self._log:
            self._log.append(signal)
        for listener in self._listeners:
            try:
                listener(signal)
            except Exception as error:  # noqa: BLE001 - it is told, and others are to hear the signal too
                self._seldom.say(f"a listener to {name} failed", error)

    def close(self) -> None:
        if self._log:
            self._log.close()


class Served(NamedTuple):
    """What the live policy has answered."""

    request: Request
    policy: str
    choice: Choice


class Shadow(NamedTuple):
    policy: Policy[Any]
    on: bool = False


SHADOWS: Mapping[str, Shadow] = {"egreedy-v2-shadow": Shadow(SERVED["egreedy/v2"])}


@dataclass(frozen=True)
class ShadowStatus:
    """How a shadow does in this process."""

    name: str
    policy: str
    on: bool
    counts: Counts


class ShadowRunner:
    """One shadow that is on."""

    def __init__(
        self,
        name: str,
        policy: Policy[Any],
        store: Store,
        signals: Signals,
        clock: Callable[[], float],
        longest_s: float = LONGEST_S,
    ) -> None:
        self.name = name
        self._policy = policy
        self._store = store
        self._signals = signals
        self._clock = clock
        self._seldom = RateLimitedLog(_log)
        self._aside = BackgroundExecutor(f"shadow {name}", self._choose, self._publish, self._complain, longest_s)
        self.offer = self._aside.offer
        self.counts = self._aside.counts

    def close(self) -> None:
        """The last signal says what became of all the others, and of what was dropped."""
        counts = self._aside.close()
        try:
            self._signals.publish(f"shadow:{self.name}:counts", self._clock(), counts=counts.as_data())
        except OSError as error:  # the rest of the recommender is to be closed all the same
            told = printable(f"{type(error).__name__}: {error}", 300)
            _log.warning("the counts of the shadow %s, %s, can't be written: %s", self.name, counts, told)

    def _choose(self, served: Served) -> Choice:
        request = served.request
        state = known_state(self._policy, self._store.read_state(Key(request.user_id, self.name)))
        return self._policy.choose(state, request, EventRng(self.name, request.user_id, request.event_id))

    def _publish(self, done: Done[Served, Choice]) -> None:
        request, served_by, served = done.item
        ids = [candidate.id for candidate in request.candidates]
        features = self._policy.features
        self._signals.publish(
            f"shadow:{self.name}",
            self._clock(),
            event_id=request.event_id,
            user_id=request.user_id,
            policy=self._policy.name,
            feature_version=features.version,
            parameters=self._policy.parameters,
            features={"names": features.names, "rows": done.result.features.tolist()},
            candidates=ids,
            scores=done.result.scores.tolist(),
            propensities=done.result.propensities.tolist(),
            chosen=ids[done.result.place],
            served={"policy": served_by, "chosen": ids[served.place], "propensity": served.propensity},
            agrees=done.result.place == served.place,
            latency_ms=round(done.took_s * 1000, 3),
            waited_ms=round(done.waited_s * 1000, 3),
            counts=done.counts.as_data(),
        )

    def _complain(self, error: Exception) -> None:
        self._seldom.say(f"the shadow {self.name} failed, and nothing was published", error)


class Shadows:
    """Those of a map that are on; by itself, none."""

    def __init__(
        self,
        known: Mapping[str, Shadow] = SHADOWS,
        beside: Sequence[ShadowRunner] = (),
        signals: Signals | None = None,
    ) -> None:
        self._known = known
        self._beside = beside
        self._signals = signals or Signals()

    @property
    def names(self) -> list[str]:
        """Under which somebody may have given a shadow a state."""
        return list(self._known)

    @property
    def any_on(self) -> bool:
        return bool(self._beside)

    def offer(self, served: Served) -> None:
        """Returns at once, whatever a shadow does."""
        for shadow in self._beside:
            shadow.offer(served)

    def subscribe(self, listener: Callable[[Signal], None]) -> None:
        """Every signal from now on, in this process."""
        self._signals.subscribe(listener)

    def standing(self) -> list[ShadowStatus]:
        counts = {shadow.name: shadow.counts() for shadow in self._beside}
        return [
            ShadowStatus(name, shadow.policy.name, name in counts, counts.get(name, Counts()))
            for name, shadow in self._known.items()
        ]

    def close(self) -> None:
        """Ends what is on its way, within a second for each shadow, and says what became of it all."""
        for shadow in self._beside:
            shadow.close()
        self._signals.close()


def check_names(names: Iterable[str], known: Mapping[str, Shadow] = SHADOWS) -> None:
    unknown = sorted(set(names) - known.keys())
    if unknown:
        raise InvalidInput(f"there is no shadow {', '.join(map(shown, unknown))}; known are: {', '.join(known)}")


def open_shadows(
    names: Iterable[str],
    store: Store,
    signals_folder: Path,
    clock: Callable[[], float],
    known: Mapping[str, Shadow] = SHADOWS,
    longest_s: float = LONGEST_S,
) -> Shadows:
    """Those that are named are on, beside those that are on anyway. To be called in the process that serves.

    A signal comes within `longest_s` of what was served, or never.
    """
    wanted = set(names)
    check_names(wanted, known)
    signals = Signals(SegmentLog(signals_folder, clock))
    on = [name for name, shadow in known.items() if shadow.on or name in wanted]
    beside = [ShadowRunner(name, known[name].policy, store, signals, clock, longest_s) for name in on]
    return Shadows(known, beside, signals)
