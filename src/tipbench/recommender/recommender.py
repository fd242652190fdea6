"""The recommender: several policies over one store, one of them live, with shadow policies running in the background.

answer = recommender.score("egreedy", request)
outcome = recommender.reward("egreedy", reward)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from tipbench.core.errors import Conflict, NotFound, StateDamaged, StateError
from tipbench.recommender.features.interface import Floats
from tipbench.recommender.log.decisions import DecisionLog
from tipbench.recommender.observer import Observer, Status
from tipbench.recommender.policies.catalog import identity_of, name_of, policy_of, prior_of, takes_prior
from tipbench.recommender.policies.choosing import EventRng
from tipbench.recommender.policies.interface import Choice, Policy
from tipbench.recommender.records import Request, Reward
from tipbench.recommender.shadows.runner import Served, Shadows
from tipbench.recommender.store.interface import Event, Key, Store, UserState, policy_state

REWARD_WINDOW_S = 7 * 86_400.0


class Ranked(NamedTuple):
    id: str
    score: float
    propensity: float


@dataclass(frozen=True)
class Answer:
    """The chosen candidate for an event, and how it was chosen."""

    event_id: str
    chosen: str
    propensity: float
    epsilon: float
    n: int
    policy: str
    feature_version: str
    prior: str | None  # digest of the population prior
    ranking: tuple[Ranked, ...]  # best first; a repeated answer has only the chosen one if more was learned since
    repeated: bool = False


@dataclass(frozen=True)
class Stats:
    """What one policy knows about one user."""

    user_id: str
    policy: str
    feature_version: str
    prior: str | None  # digest of the population prior
    parameters: Mapping[str, float | str]
    n: int
    epsilon: float
    mean_reward: float | None
    waiting: int  # events that have no reward yet
    duplicates: int
    late: int
    updated_ms: int | None
    learned: Mapping[str, Any]  # θ, λ and the condition number of X'X + λI, for policies with a regression


class Outcome(NamedTuple):
    """The effect of a reward: its status, and the number of rewards learned by now."""

    status: Status
    n: int


class Recommender:
    def __init__(
        self,
        policies: Mapping[str, Policy[Any]],
        live: str | Callable[[], str],
        store: Store,
        decisions: DecisionLog,
        clock: Callable[[], float],
        shadows: Shadows | None = None,
        reward_window_s: float = REWARD_WINDOW_S,
        identity: Callable[[str], str] = str,
        observer: Observer | None = None,
    ) -> None:
        """`live` is a policy's identity, or a callable (such as `LivePolicy.current`) that is called for every request.

        `identity` (such as `LivePolicy.identity`) returns the identity of a policy that takes a prior and is asked for
        by name; by default it has none.
        """
        self._policies = policies
        self._live = live
        self._store = store
        self._decisions = decisions
        self._clock = clock
        self._shadows = shadows or Shadows()
        self._window_ms = round(reward_window_s * 1000)
        self._identity = identity
        self._observer = observer or Observer()
        self._with_priors: dict[str, Policy[Any]] = {}

    @property
    def live(self) -> str:
        return self._live if isinstance(self._live, str) else self._live()

    def score(self, policy_name: str, request: Request) -> Answer:
        """Choose a candidate for this request. Idempotent by event: the same request again gets the same choice.

        Raises NotFound for an unknown policy, Conflict if the event was scored for another request.
        """
        policy = self._policy(policy_name)
        shadowed = self._shadows.any_on and identity_of(policy) == self._live_if_known()
        digest = _digest(request)
        opened = self._store.transaction(Key(request.user_id, policy.name), request.event_id)
        with self._observer.transaction("score", opened) as transaction:
            event = transaction.event(request.event_id)
            if event and event.request != digest:
                raise Conflict(
                    f"the event {request.event_id!r} was scored for another request; use a new event id for this one"
                )
            user_state = transaction.user_state or _initial_state(policy)
            state = policy_state(policy, user_state)
            at_ms = event.scored_ms if event else self._now_ms
            choice = policy.choose(state, request, EventRng(policy.name, request.user_id, request.event_id), at_ms)
            if event:
                return _repeated(policy, request, event, choice)
            self._decisions.log_decision(policy, request, choice, state.n, at_ms)
            policy.show(state, request.candidates[choice.position].category, at_ms)
            transaction.put(_event(request, digest, choice, state.n, at_ms))
            transaction.put_state(replace(user_state, state=state.as_data()))
        self._observer.decided(policy.name)
        if shadowed:
            self._shadows.offer(Served(request, policy.name, choice, at_ms))
        return _answer(policy, request, choice, state.n)

    def reward(self, policy_name: str, reward: Reward) -> Outcome:
        """Learn from an event's reward, once, using the features that were stored when it was scored.

        Raises NotFound for an unknown policy or event, Conflict if the event already has another reward.
        """
        policy = self._known(name_of(policy_name))
        opened = self._store.transaction(Key(reward.user_id, policy.name), reward.event_id)
        with self._observer.transaction("reward", opened) as transaction:
            event = transaction.event(reward.event_id)
            if event is None:
                raise NotFound(
                    f"no event {reward.event_id!r} of user {reward.user_id!r} is known to {policy.name}; "
                    "score it first, and send the reward in time"
                )
            user_state = transaction.user_state or _initial_state(policy)
            state = policy_state(policy, user_state)
            status: Status
            if event.reward is not None:
                _check_same_reward(event, reward)
                status = "duplicate"
                transaction.put_state(replace(user_state, duplicates=user_state.duplicates + 1))
            elif event.late or event.features is None or self._now_ms - event.scored_ms > self._window_ms:
                status = "late"
                self._decisions.log_reward(policy.name, reward, learned=False)
                transaction.put(replace(event, reward=reward.reward, late=True, features=None, category=None))
                transaction.put_state(replace(user_state, late=user_state.late + 1))
            else:
                status = "applied"
                seen = _stored_features(policy, event.features)
                self._decisions.log_reward(policy.name, reward, learned=True)
                policy.learn(state, seen, reward.reward, event.scored_ms)
                transaction.put(replace(event, reward=reward.reward, features=None, category=None))
                transaction.put_state(replace(user_state, state=state.as_data(), updated_ms=self._now_ms))
        self._observer.rewarded(policy.name, status, event.category, reward.reward)
        return Outcome("late" if event.late else status, state.n)

    def reward_served(self, reward: Reward) -> tuple[str, Outcome]:
        """Reward an event under the policy that served it, as another may be live by now; also return its name."""
        live = name_of(self._live_if_known() or "")
        for name in sorted(self._policies, key=lambda name: name != live):
            try:
                return name, self.reward(name, reward)
            except NotFound:
                continue
        raise NotFound(
            f"no event {reward.event_id!r} of user {reward.user_id!r} is known; score it first, and send the reward "
            "in time"
        )

    def stats(self, policy_name: str, user_id: str) -> Stats:
        """Return what a policy has learned about a user; for an unknown user, the statistics of an empty state."""
        policy = self._policy(policy_name)
        key = Key(user_id, policy.name)
        user_state = self._store.read_state(key) or _initial_state(policy)
        state = policy_state(policy, user_state)
        return Stats(
            user_id=user_id,
            policy=policy.name,
            feature_version=policy.features.version,
            prior=prior_of(identity_of(policy)),
            parameters=policy.parameters,
            n=state.n,
            epsilon=policy.epsilon(state),
            mean_reward=state.reward_sum / state.n if state.n else None,
            waiting=self._store.waiting(key),
            duplicates=user_state.duplicates,
            late=user_state.late,
            updated_ms=user_state.updated_ms,
            learned=policy.explain(state),
        )

    def reset(self, user_id: str) -> list[str]:
        """Delete all data about a user; return the policies that had any.

        The log gets to know first: a kill in between must not leave the user in the next prior.
        """
        policies = [*self._policies, *self._shadows.names]
        self._decisions.log_reset(user_id, policies)
        return self._store.clear(user_id, policies)

    def close(self) -> None:
        self._shadows.close()
        self._decisions.close()
        self._store.close()

    def _live_if_known(self) -> str | None:
        """Return the live policy, or None if it can't be determined; callers that need it use `live`, which raises."""
        try:
            return self.live
        except StateError:
            return None

    def _policy(self, name: str) -> Policy[Any]:
        """Return the policy of a name or an identity, with its prior."""
        known = self._known(name_of(name))
        identity = self._identity(name) if name == known.name and takes_prior(known) else name
        if prior_of(identity) is None:
            return known
        if identity not in self._with_priors:
            self._with_priors[identity] = policy_of(identity, self._store.priors.read, self._policies)
        return self._with_priors[identity]

    def _known(self, name: str) -> Policy[Any]:
        if name not in self._policies:
            raise NotFound(f"there is no policy {name!r}; there are {', '.join(self._policies)}")
        return self._policies[name]

    @property
    def _now_ms(self) -> int:
        return round(self._clock() * 1000)


def _event(request: Request, digest: str, choice: Choice, n: int, at_ms: int) -> Event:
    chosen = request.candidates[choice.position]
    return Event(
        id=request.event_id,
        scored_ms=at_ms,
        request=digest,
        chosen=chosen.id,
        score=float(choice.scores[choice.position]),
        propensity=choice.propensity,
        epsilon=choice.epsilon,
        n=n,
        features=tuple(choice.seen.tolist()),
        source=chosen.source,
        category=chosen.category,
    )


def _digest(request: Request) -> str:
    """Return a digest of the request, which is the same as before candidates had a `judged`, if they have none."""
    text = request.model_dump_json().replace(',"judged":null', "")  # within a text, its quotes would be escaped
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _initial_state(policy: Policy[Any]) -> UserState:
    return UserState(policy.features.version, policy.new_state().as_data())


def _stored_features(policy: Policy[Any], features: tuple[float, ...]) -> Floats:
    """Return an event's stored features as an array.

    Raises StateDamaged unless they fit the policy: broadcasting could accept another length and corrupt the state.
    """
    seen = np.array(features)
    if len(seen) != policy.features.dimensions or not np.isfinite(seen).all():
        raise StateDamaged(f"an event's features can't come from {policy.name}; reset the user")
    return seen


def _check_same_reward(event: Event, reward: Reward) -> None:
    if event.reward != reward.reward:
        raise Conflict(
            f"the event {event.id!r} already has the reward {event.reward}, not {reward.reward}; the first one counts"
        )


def _answer(policy: Policy[Any], request: Request, choice: Choice, n: int, repeated: bool = False) -> Answer:
    ids = [candidate.id for candidate in request.candidates]
    rows = map(Ranked, ids, choice.scores.tolist(), choice.propensities.tolist())
    return Answer(
        event_id=request.event_id,
        chosen=ids[choice.position],
        propensity=choice.propensity,
        epsilon=choice.epsilon,
        n=n,
        policy=policy.name,
        feature_version=policy.features.version,
        prior=prior_of(identity_of(policy)),
        ranking=tuple(sorted(rows, key=lambda row: -row.score)),
        repeated=repeated,
    )


def _repeated(policy: Policy[Any], request: Request, event: Event, choice: Choice) -> Answer:
    """Rebuild the earlier answer: in full if nothing was learned since, otherwise ranking only the chosen candidate."""
    again = _answer(policy, request, choice, event.n, repeated=True)
    before = Ranked(event.chosen, event.score, event.propensity)
    if before in again.ranking and again.chosen == event.chosen and again.epsilon == event.epsilon:
        return again
    return replace(again, chosen=event.chosen, propensity=event.propensity, epsilon=event.epsilon, ranking=(before,))
