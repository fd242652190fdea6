"""Shadow policies: they choose in the background, after the live policy has answered, and never get a reward.

A shadow's choice is published as the signal `shadow:NAME`, or dropped and counted: the served answer neither waits for
it nor depends on it. A shadow's state has its own key, and is only ever read. Nothing is learned without rewards, so
all candidates tie: this shows that a policy can be served, not how good it is.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tipbench.core.errors import InvalidInput
from tipbench.core.untrusted import printable, shown
from tipbench.recommender.log.segmented_log import RateLimitedLog, SegmentLog
from tipbench.recommender.observer import Observer
from tipbench.recommender.policies.catalog import SERVED
from tipbench.recommender.policies.choosing import EventRng
from tipbench.recommender.policies.interface import Choice, Policy
from tipbench.recommender.records import Request
from tipbench.recommender.shadows.background import TIMEOUT_S, BackgroundExecutor, Counts, Done
from tipbench.recommender.store.interface import Key, Store, policy_state

SCHEMA = 1
Signal = Mapping[str, Any]
_log = logging.getLogger(__name__)


# Signals: events published as JSON lines in a folder, and to listeners in this process.


class Signals:
    def __init__(self, log: SegmentLog | None = None) -> None:
        """Without a log, signals go to listeners only."""
        self._log = log
        self._listeners: list[Callable[[Signal], None]] = []
        self._rate_limited_log = RateLimitedLog(_log)

    def subscribe(self, listener: Callable[[Signal], None]) -> None:
        """Add a listener, called in the publishing thread. A slow one may cost later signals, never an answer."""
        self._listeners.append(listener)

    def publish(self, name: str, at: float, **content: Any) -> None:
        """Write a signal to the log, then call the listeners; log a warning for one that raises, and go on."""
        signal = {"schema": SCHEMA, "signal": name, "at_ms": round(at * 1000), **content}
        if self._log:
            self._log.append(signal)
        for listener in self._listeners:
            try:
                listener(signal)
            except Exception as error:  # noqa: BLE001 - it is logged, and the other listeners still get the signal
                self._rate_limited_log.warning(f"a listener to {name} failed", error)

    def close(self) -> None:
        if self._log:
            self._log.close()


class Served(NamedTuple):
    """A request, and what the live policy chose for it."""

    request: Request
    policy: str
    choice: Choice
    at_ms: int


class Shadow(NamedTuple):
    policy: Policy[Any]
    on: bool = False


SHADOWS: Mapping[str, Shadow] = {"egreedy-v2-shadow": Shadow(SERVED["egreedy/v2"])}


@dataclass(frozen=True)
class ShadowStatus:
    """The status of a shadow in this process."""

    name: str
    policy: str
    on: bool
    counts: Counts


class ShadowRunner:
    """Runs one enabled shadow."""

    def __init__(
        self,
        name: str,
        policy: Policy[Any],
        store: Store,
        signals: Signals,
        clock: Callable[[], float],
        timeout_s: float = TIMEOUT_S,
        observer: Observer | None = None,
    ) -> None:
        self.name = name
        self._policy = policy
        self._store = store
        self._signals = signals
        self._clock = clock
        self._rate_limited_log = RateLimitedLog(_log)
        self._observer = observer or Observer()
        self._executor = BackgroundExecutor(
            f"shadow {name}",
            self._choose,
            self._publish,
            self._on_error,
            timeout_s,
            on_drop=lambda: self._observer.shadow_dropped(name),
        )
        self.offer = self._executor.offer
        self.counts = self._executor.counts

    def close(self) -> None:
        """Finish what is queued, and publish the final counts as the last signal."""
        counts = self._executor.close()
        try:
            self._signals.publish(f"shadow:{self.name}:counts", self._clock(), counts=counts.as_data())
        except OSError as error:  # the rest of the recommender must still be closed
            message = printable(f"{type(error).__name__}: {error}", 300)
            _log.warning("the counts of the shadow %s, %s, can't be written: %s", self.name, counts, message)

    def _choose(self, served: Served) -> Choice:
        request = served.request
        state = policy_state(self._policy, self._store.read_state(Key(request.user_id, self.name)))
        generator = EventRng(self.name, request.user_id, request.event_id)
        return self._policy.choose(state, request, generator, served.at_ms)

    def _publish(self, done: Done[Served, Choice]) -> None:
        request, served_by, served, _ = done.item
        ids = [candidate.id for candidate in request.candidates]
        features = self._policy.features
        agrees = done.result.position == served.position
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
            chosen=ids[done.result.position],
            served={"policy": served_by, "chosen": ids[served.position], "propensity": served.propensity},
            agrees=agrees,
            latency_ms=round(done.took_s * 1000, 3),
            waited_ms=round(done.waited_s * 1000, 3),
            counts=done.counts.as_data(),
        )
        self._observer.shadow_chose(self.name, agrees)

    def _on_error(self, error: Exception) -> None:
        self._rate_limited_log.warning(f"the shadow {self.name} failed, and nothing was published", error)


class Shadows:
    """All known shadows, of which those with a runner are on; by default none."""

    def __init__(
        self,
        known: Mapping[str, Shadow] = SHADOWS,
        runners: Sequence[ShadowRunner] = (),
        signals: Signals | None = None,
    ) -> None:
        self._known = known
        self._runners = runners
        self._signals = signals or Signals()

    @property
    def names(self) -> list[str]:
        """The keys under which a shadow may have a state, whether or not it is on."""
        return list(self._known)

    @property
    def any_on(self) -> bool:
        return bool(self._runners)

    def offer(self, served: Served) -> None:
        """Offer a served request to all shadows that are on; never blocks."""
        for shadow in self._runners:
            shadow.offer(served)

    def subscribe(self, listener: Callable[[Signal], None]) -> None:
        """Call the listener with every signal published from now on in this process."""
        self._signals.subscribe(listener)

    def status(self) -> list[ShadowStatus]:
        counts = {shadow.name: shadow.counts() for shadow in self._runners}
        return [
            ShadowStatus(name, shadow.policy.name, name in counts, counts.get(name, Counts()))
            for name, shadow in self._known.items()
        ]

    def close(self) -> None:
        """Close all shadows, each within a second, and publish their final counts."""
        for shadow in self._runners:
            shadow.close()
        self._signals.close()


def check_names(names: Iterable[str], known: Mapping[str, Shadow] = SHADOWS) -> None:
    unknown = sorted(set(names) - known.keys())
    if unknown:
        raise InvalidInput(f"there is no shadow policy {', '.join(map(shown, unknown))}; known are: {', '.join(known)}")


def open_shadows(
    names: Iterable[str],
    store: Store,
    signals_folder: Path,
    clock: Callable[[], float],
    known: Mapping[str, Shadow] = SHADOWS,
    timeout_s: float = TIMEOUT_S,
    observer: Observer | None = None,
) -> Shadows:
    """Enable the named shadows, besides those that are on by default; call it in the process that serves.

    A signal is published within `timeout_s` of the answer, or never. Raises InvalidInput for an unknown name.
    """
    wanted = set(names)
    check_names(wanted, known)
    signals = Signals(SegmentLog(signals_folder, clock))
    on = [name for name, shadow in known.items() if shadow.on or name in wanted]
    runners = [ShadowRunner(name, known[name].policy, store, signals, clock, timeout_s, observer) for name in on]
    return Shadows(known, runners, signals)
