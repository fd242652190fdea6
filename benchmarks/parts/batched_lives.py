"""Many simulated lives at once, as arrays: ten times as fast as one after the other, for measurements of many gates.

The product simulates each life with the code that serves (`roll_out`). This says the same again for arrays with one row
for each life, and only for the policies that gates have; `check` compares its choices with `roll_out`, life by life.
"""

import math
import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tipbench.core.identity import derived_seed
from tipbench.recommender.features.v1 import NAMES as V1_NAMES
from tipbench.recommender.features.v2 import LONGEST_DWELL_S
from tipbench.recommender.features.v2 import NAMES as V2_NAMES
from tipbench.recommender.features.v3 import DENSE
from tipbench.recommender.policies.category_mean import CategoryMean
from tipbench.recommender.policies.choosing import EventRng
from tipbench.recommender.policies.egreedy import EGreedy
from tipbench.recommender.policies.posterior import REMEMBERED
from tipbench.recommender.policies.ucb import Ucb
from tipbench.recommender.records import CategoryProfile, Profile
from tipbench.recommender.simulation.experiment import METRICS, Plan, Results, Unit, sum_bins
from tipbench.recommender.simulation.popularity import MostPopular
from tipbench.recommender.simulation.rollout import Arm, InProcess, PermutedRows, roll_out
from tipbench.recommender.simulation.simulated_prior import with_simulated_prior
from tipbench.recommender.simulation.user_model import Draws, Life, draw_life
from tipbench.recommender.simulation.world import World

Floats = NDArray[np.float64]
Indexes = NDArray[np.intp]
_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
_FIELDS = tuple(CategoryProfile.model_fields)
_SHOWN, _COMPLETED, _DISMISSED, _DWELL, _SIN, _COS = range(len(_FIELDS))


class Lives:
    """The draws of many lives, as arrays whose first axis is the life."""

    def __init__(self, plan: Plan) -> None:
        world, self.plan = plan.world, plan
        self.units = [Unit(persona, seed) for persona in range(len(world.personas)) for seed in plan.seeds]
        self.draws = [
            draw_life(world, world.personas[persona], seed, plan.steps, plan.offered) for persona, seed in self.units
        ]
        self.tips = self.draws[0].tips
        self.number = np.arange(len(self.draws))
        self.at_hours = np.array([draws.at_hours for draws in self.draws])
        self.at_ms = np.rint(self.at_hours * _HOUR_MS).astype(np.int64)
        self.offered = np.array([draws.offered for draws in self.draws])
        self.focus = np.array([draws.focus for draws in self.draws])
        self.luck = np.array([draws.luck for draws in self.draws])
        self.dwell_chance = np.array([draws.dwell for draws in self.draws])
        self.fatigue = np.array([draws.user.fatigue for draws in self.draws])
        self.utilities = np.array([Life(world, draws).fixed for draws in self.draws])
        due = [draws.due() for draws in self.draws]
        self.due = [list(_due_after([of_life[step] for of_life in due])) for step in range(plan.steps)]
        self.permutations = self._permutations()

    def _permutations(self) -> Indexes:
        """Return how permuted features are shuffled, by life and step."""
        found = np.empty(self.offered.shape, dtype=np.intp)
        for life in range(len(self.draws)):
            for step in range(self.plan.steps):
                places = list(range(self.plan.offered))
                random.Random(derived_seed("placebo", self.user_id(life), f"e{step}")).shuffle(places)
                found[life, step] = places
        return found

    def user_id(self, life: int, luck: str = "") -> str:
        persona, seed = self.units[life]
        return f"{self.plan.world.personas[persona].name}-{seed}{luck}"


def _due_after(due: Sequence[Sequence[int]]) -> Iterator[tuple[Indexes, Indexes]]:
    """Yield lives, and for each the step whose reward arrives now; lives with several come again."""
    for number in range(max(map(len, due))):
        found = [(life, steps[number]) for life, steps in enumerate(due) if len(steps) > number]
        lives, events = zip(*found, strict=True)
        yield np.array(lives), np.array(events)


class Step(NamedTuple):
    """One decision of every life."""

    number: int
    at_ms: NDArray[np.int64]
    tips: Indexes  # offered
    categories: Indexes
    features: Floats  # version 2's


class BatchPolicy(Protocol):
    n: NDArray[np.int64]

    def scores(self, step: Step) -> Floats: ...

    def epsilon(self) -> Floats: ...

    def show(self, step: Step, positions: Indexes) -> None: ...

    def learn(self, lives: Indexes, events: Indexes, rewards: Floats) -> None: ...


class Profiles:
    """Profiles by category of all users: NaN where something is not known."""

    def __init__(self, world: World, lives: Lives) -> None:
        declared = [world.personas[unit.persona].profile_features or Profile() for unit in lives.units]
        shape = (len(declared), len(world.categories), len(_FIELDS))
        self.values, self.known = np.zeros(shape), np.zeros(shape[:2], dtype=np.bool_)
        self._dwelt, self._dwell_sum_s = np.zeros(shape[:2]), np.zeros(shape[:2])
        for life, profile in enumerate(declared):
            for name, entry in profile.categories.items():
                category = world.categories.index(name)
                self.known[life, category] = True
                self.values[life, category] = [_or_nan(getattr(entry, field)) for field in _FIELDS]
                if entry.mean_dwell_s is not None:
                    self._dwelt[life, category] = entry.shown or 0.0
                    dwell_s = (entry.shown or 0.0) * min(entry.mean_dwell_s, LONGEST_DWELL_S)
                    self._dwell_sum_s[life, category] = dwell_s
        self.flat = np.array([_flat(profile) for profile in declared])
        self.preferred = np.array([_or_nan(profile.preferred_hour) for profile in declared])

    def observe(self, lives: Indexes, categories: Indexes, seen: "Seen") -> None:
        at = lives, categories
        self.known[at] = True
        values = np.nan_to_num(self.values[at])
        self._dwelt[at] += 1
        self._dwell_sum_s[at] += np.minimum(seen.dwell_s, LONGEST_DWELL_S)
        angle = math.tau * seen.hour / 24
        values[:, _SHOWN] += 1
        values[:, _DISMISSED] += seen.dismissed
        values[:, _COMPLETED] += seen.completed
        values[:, _SIN] += np.where(seen.completed, np.sin(angle), 0.0)
        values[:, _COS] += np.where(seen.completed, np.cos(angle), 0.0)
        values[:, _DWELL] = self._dwell_sum_s[at] / self._dwelt[at]
        self.values[at] = values

    def features(self, angle: Floats) -> Floats:
        """Return version 2's five dimensions by life and category."""
        entries, known = self.values, self.known
        counted = known & ~np.isnan(entries[..., _SHOWN])
        dwell_sums = entries[..., _SHOWN] * np.minimum(entries[..., _DWELL], LONGEST_DWELL_S)
        usual = [
            _usual(entries[..., _SHOWN], values, counted, value)
            for values, value in (
                (entries[..., _COMPLETED], 0.3),
                (entries[..., _DISMISSED], 0.3),
                (dwell_sums, math.sqrt(1 + LONGEST_DWELL_S) - 1),
            )
        ]
        count = entries[..., _SHOWN] + 5.0
        rates = [
            np.clip(2 * (entries[..., field] + 5.0 * mean[:, None]) / count - 1, -1, 1)
            for field, mean in ((_COMPLETED, usual[0]), (_DISMISSED, usual[1]))
        ]
        dwell = _dwell((dwell_sums + 5.0 * usual[2][:, None]) / count)
        projection = entries[..., _SIN] * np.sin(angle)[:, None] + entries[..., _COS] * np.cos(angle)[:, None]
        alignment = np.clip(projection / (entries[..., _COMPLETED] + 3.0), -1, 1)
        found = np.stack((*rates, dwell, alignment, _volume(entries[..., _SHOWN])), axis=-1)
        flat = self.flat.copy()
        flat[:, 3] = np.cos(angle - math.tau * self.preferred / 24)
        flat = np.nan_to_num(flat)[:, None, :]
        found = np.where(np.isnan(found), flat, found)
        anything = np.logical_or.reduce(known, axis=1)
        return np.where(anything[:, None, None], found, flat)


def _usual(shown: Floats, values: Floats, counted: NDArray[np.bool_], usual: float) -> Floats:
    counted = counted & ~np.isnan(values)
    total: Floats = np.where(counted, values, 0.0).sum(axis=1) + 5.0 * usual
    found: Floats = total / (np.where(counted, shown, 0.0).sum(axis=1) + 5.0)
    return found


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _flat(profile: Profile) -> list[float]:
    """Return what is declared of the user as a whole, in the order of version 2's dimensions; the hour comes later."""
    rates = [2 * _or_nan(rate) - 1 for rate in (profile.completion_rate, profile.dismiss_rate)]
    dwell, volume = (np.array(_or_nan(value)) for value in (profile.mean_dwell_s, profile.tip_volume))
    return [*rates, float(_dwell(dwell)), 0.0, float(_volume(volume))]


def _dwell(mean_s: Floats) -> Floats:
    return 2 * np.log1p(np.minimum(mean_s, LONGEST_DWELL_S)) / math.log(1 + LONGEST_DWELL_S) - 1


def _volume(shown: Floats) -> Floats:
    return 2 * np.minimum(1.0, np.log1p(shown) / math.log(1001.0)) - 1


class Seen(NamedTuple):
    """What users did with what they were shown."""

    hour: Floats
    dwell_s: Floats
    completed: NDArray[np.bool_]
    dismissed: NDArray[np.bool_]


# Policies.


class BatchRidge:
    """`egreedy/v2`."""

    def __init__(self, policy: EGreedy, lives: Lives) -> None:
        size, dimensions = len(lives.number), policy.features.dimensions
        self._decay = policy.decay
        self.n = np.zeros(size, dtype=np.int64)
        self._xx = np.tile(policy.ridge * np.eye(dimensions), (size, 1, 1))
        self._xr = np.zeros((size, dimensions))
        self._seen = np.zeros((size, lives.plan.steps, dimensions))

    def epsilon(self) -> Floats:
        return np.maximum(self._decay.floor, self._decay.first / (1 + self.n / self._decay.half_after))

    def scores(self, step: Step) -> Floats:
        self._features = step.features
        theta = np.linalg.solve(self._xx, self._xr[..., None])
        found: Floats = (step.features @ theta)[..., 0]
        return found

    def show(self, step: Step, positions: Indexes) -> None:
        self._seen[:, step.number] = self._features[np.arange(len(positions)), positions]

    def learn(self, lives: Indexes, events: Indexes, rewards: Floats) -> None:
        seen = self._seen[lives, events]
        self._xx[lives] += seen[:, :, None] * seen[:, None, :]
        self._xr[lives] += rewards[:, None] * seen
        self.n[lives] += 1


class BatchMeans:
    """`category-mean` and `most-popular`: a mean for each category, or for each tip."""

    def __init__(self, policy: CategoryMean, lives: Lives) -> None:
        size, tips = len(lives.number), len(lives.tips.category)
        self._decay, self._ridge, self._of_tips = policy.decay, policy.ridge, isinstance(policy, MostPopular)
        self.n = np.zeros(size, dtype=np.int64)
        self._totals, self._counts = np.zeros((size, tips)), np.zeros((size, tips))
        if isinstance(policy, MostPopular):
            known = policy.new_state().sums
            for tip in range(tips):
                number = policy.features.rows(_a_request(tip))[0][0]
                self._totals[:, tip], self._counts[:, tip] = known.get(number, (0.0, 0))
        self._seen = np.zeros((size, lives.plan.steps), dtype=np.intp)

    def epsilon(self) -> Floats:
        return np.maximum(self._decay.floor, self._decay.first / (1 + self.n / self._decay.half_after))

    def scores(self, step: Step) -> Floats:
        self._keys = step.tips if self._of_tips else step.categories
        totals, counts = (np.take_along_axis(values, self._keys, axis=1) for values in (self._totals, self._counts))
        found: Floats = totals / (counts + self._ridge)
        return found

    def show(self, step: Step, positions: Indexes) -> None:
        self._seen[:, step.number] = self._keys[np.arange(len(positions)), positions]

    def learn(self, lives: Indexes, events: Indexes, rewards: Floats) -> None:
        at = lives, self._seen[lives, events]
        self._totals[at] += rewards
        self._counts[at] += 1
        self.n[lives] += 1


def _a_request(tip: int) -> Any:
    class Candidate(NamedTuple):
        id: str

    class Request(NamedTuple):
        candidates: tuple[Candidate, ...]

    return Request((Candidate(f"tip-{tip}"),))


class BatchUcb:
    """`ucb/v3` and `egreedy/v3`, with any prior and with permuted features."""

    def __init__(self, policy: Ucb, lives: Lives) -> None:
        size, steps, self._lives = len(lives.number), lives.plan.steps, lives
        slots = len(lives.plan.world.categories) + 1
        self._policy, self._prior = policy, policy.prior
        rows = policy.features.rows
        self._permuted = list(rows.dimensions) if isinstance(rows, PermutedRows) else []
        self._judged = np.nan_to_num(2 * lives.tips.judged - 1)
        self._tips = np.array([policy.prior.tips.get(f"tip-{tip}", 0.0) for tip in range(len(self._judged))])
        self.n = np.zeros(size, dtype=np.int64)
        self._at_ms = np.zeros(size, dtype=np.int64)
        self._sums = np.zeros((size, DENSE + slots, DENSE + 1))
        self._slot = np.full((size, slots), -1)  # by category; -1 if it was never shown
        self._met = np.zeros(size, dtype=np.intp)
        self._impressions, self._last_ms = np.zeros((size, slots)), np.zeros((size, slots), dtype=np.int64)
        self._seen = np.zeros((size, steps, DENSE))
        self._seen_category = np.zeros((size, steps), dtype=np.intp)

    def epsilon(self) -> Floats:
        decay = self._policy.decay
        return np.maximum(decay.floor, decay.first / (1 + self.n / decay.half_after))

    def scores(self, step: Step) -> Floats:
        new = np.zeros((*step.tips.shape, 4))  # tiredness, judged, reward of the tip, category
        new[..., 1], new[..., 3] = self._judged[step.tips], step.categories
        features = np.concatenate((step.features, new), axis=2)
        if self._permuted:
            order = self._lives.permutations[:, step.number]
            for dimension in self._permuted:
                features[..., dimension] = np.take_along_axis(features[..., dimension], order, axis=1)
        categories = features[..., DENSE].astype(np.intp)
        slots = self._slots_of(self._lives.number[:, None], categories)
        since = step.at_ms[:, None] - np.take_along_axis(self._last_ms, slots, axis=1)
        count = np.take_along_axis(self._impressions, slots, axis=1) * np.exp(-since / _DAY_MS)
        features[..., DENSE - 3], features[..., DENSE - 1] = np.minimum(1.0, count / 4.0), self._tips[step.tips]
        self._features, self._categories = features[..., :DENSE], categories
        means, variances = self._rewards(slots, step.at_ms)
        sds, noise = self._policy.sds, self._prior.noise
        found: Floats = means + np.sqrt(sds**2 * noise * variances) if sds else means
        return found

    def _rewards(self, slots: Indexes, at_ms: NDArray[np.int64]) -> tuple[Floats, Floats]:
        sums = self._sums * (REMEMBERED ** ((at_ms - self._at_ms) / (6 * _HOUR_MS)))[:, None, None]
        of_slots = sums[:, DENSE:]
        variance = 1 / (of_slots[..., 0] + self._prior.intercept_precision)
        shift = of_slots * variance[..., None]
        precision = sums[:, :DENSE] - of_slots[..., :DENSE].transpose(0, 2, 1) @ shift + self._prior.pull[:DENSE]
        of_rows = np.take_along_axis(shift, slots[..., None], axis=1)
        apart = self._features - of_rows[..., :DENSE]
        spread = apart @ np.linalg.inv(precision[..., :DENSE])
        means = (spread @ precision[..., DENSE:])[..., 0] + of_rows[..., DENSE]
        return means, np.vecdot(spread, apart) + np.take_along_axis(variance, slots, axis=1)

    def _slots_of(self, lives: Indexes, categories: Indexes) -> Indexes:
        found = self._slot[lives, categories]
        return np.where(found < 0, self._met[lives], found)

    def show(self, step: Step, positions: Indexes) -> None:
        lives = self._lives.number
        self._seen[:, step.number] = self._features[lives, positions]
        self._seen_category[:, step.number] = self._categories[lives, positions]
        shown = step.categories[lives, positions]
        slots, new = self._slots_of(lives, shown), self._slot[lives, shown] < 0
        self._slot[lives[new], shown[new]] = slots[new]
        self._met[new] += 1
        before = self._impressions[lives, slots] * np.exp(-(step.at_ms - self._last_ms[lives, slots]) / _DAY_MS)
        self._impressions[lives, slots], self._last_ms[lives, slots] = before + 1, step.at_ms

    def learn(self, lives: Indexes, events: Indexes, rewards: Floats) -> None:
        at_ms = self._lives.at_ms[lives, events]
        ahead = at_ms - self._at_ms[lives]
        weights = REMEMBERED ** (np.abs(ahead) / (6 * _HOUR_MS))
        rows = np.concatenate((self._seen[lives, events], rewards[:, None]), axis=1)
        products = rows[:, :DENSE, None] * rows[:, None, :]
        later = ahead >= 0
        self._sums[lives[later]] *= weights[later, None, None]
        self._at_ms[lives] = np.maximum(at_ms, self._at_ms[lives])
        own = np.where(later, 1.0, weights)
        self._sums[lives, :DENSE] += own[:, None, None] * products
        self._sums[lives, DENSE + self._slots_of(lives, self._seen_category[lives, events])] += own[:, None] * rows
        self.n[lives] += 1


def _batch_policy(policy: Any, lives: Lives) -> BatchPolicy:
    kinds: dict[type, Any] = {EGreedy: BatchRidge, Ucb: BatchUcb, CategoryMean: BatchMeans, MostPopular: BatchMeans}
    found: BatchPolicy = kinds[type(policy)](policy, lives)
    return found


# Playing.


class Played(NamedTuple):
    chosen: Indexes
    rewards: Floats
    completed: NDArray[np.bool_]
    dismissed: NDArray[np.bool_]


def play(lives: Lives, arm: Arm) -> Played:
    """Let an arm serve all lives; what `roll_out` does for one."""
    world, plan, number = lives.plan.world, lives.plan, lives.number
    policy, profiles = _batch_policy(arm.policy, lives), Profiles(world, lives)
    size, steps = len(number), plan.steps
    chances = [
        [EventRng(arm.policy.name, user, f"e{step}").random() for step in range(steps)]
        for user in (lives.user_id(life, arm.luck) for life in range(size))
    ]
    chance = np.array(chances)
    tired, at_hour = np.zeros((size, len(world.categories))), np.zeros(size)
    shown_at = np.full((size, len(lives.tips.category)), -np.inf)
    lengths = np.minimum(np.log1p(lives.tips.length) / math.log(2001), 1.0)
    efforts = np.minimum(lives.tips.effort_min / 60.0, 1.0)
    played = Played(
        np.zeros((size, steps), dtype=np.intp),
        np.zeros((size, steps)),
        np.zeros((size, steps), dtype=np.bool_),
        np.zeros((size, steps), dtype=np.bool_),
    )
    dwells, shown_categories = np.zeros((size, steps)), np.zeros((size, steps), dtype=np.intp)
    hours = lives.at_hours % 24
    for step in range(steps):
        now, tips = lives.at_hours[:, step], lives.offered[:, step]
        categories, angle = lives.tips.category[tips], math.tau * hours[:, step] / 24
        faded = np.exp(-(now[:, None] - np.take_along_axis(shown_at, tips, axis=1)) / 24.0)  # 0 if never shown
        features = np.empty((*tips.shape, len(V2_NAMES)))
        features[..., 0], features[..., 1], features[..., 2] = 1.0, np.sin(angle)[:, None], np.cos(angle)[:, None]
        features[..., 3] = categories == lives.focus[:, step, None]
        features[..., 4], features[..., 5], features[..., 6] = lengths[tips], efforts[tips], faded
        features[..., len(V1_NAMES) :] = profiles.features(angle)[number[:, None], categories]
        decision = Step(step, lives.at_ms[:, step], tips, categories, features)
        position = _draw(policy.scores(decision), policy.epsilon(), chance[:, step])
        policy.show(decision, position)
        tired *= np.exp(-(now - at_hour) / 18.0)[:, None]
        at_hour = now
        tiring = np.take_along_axis(tired, categories, axis=1) + faded
        utility = (lives.utilities[:, step] - lives.fatigue[:, None] * tiring)[number, position]
        tip, category = tips[number, position], categories[number, position]
        tired[number, category] += 1.0
        shown_at[number, tip] = now
        completes = 1 / (1 + np.exp(-utility))
        dismisses = (1 - completes) / (1 + np.exp(utility + 1))
        dwell = world.dwell
        dwells[:, step] = 20.0 * np.exp(dwell.slope * utility + dwell.spread * lives.dwell_chance[:, step])
        luck = lives.luck[:, step]
        completed, dismissed = luck < completes, (luck >= completes) & (luck < completes + dismisses)
        ignored = 0.2 * np.log1p(np.minimum(dwells[:, step], LONGEST_DWELL_S)) / math.log(1 + LONGEST_DWELL_S)
        played.rewards[:, step] = np.where(completed, 1.0, np.where(dismissed, -0.5, ignored))
        played.completed[:, step], played.dismissed[:, step] = completed, dismissed
        played.chosen[:, step], shown_categories[:, step] = position, category
        for some, events in lives.due[step]:
            at = some, events
            policy.learn(some, events, played.rewards[at])
            seen = Seen(hours[at], dwells[at], played.completed[at], played.dismissed[at])
            profiles.observe(some, shown_categories[at], seen)
    return played


def _draw(scores: Floats, epsilon: Floats, chance: Floats) -> Indexes:
    best = scores >= scores.max(axis=1, keepdims=True) - 1e-9
    by_chance = epsilon / scores.shape[1]
    propensities = np.where(best, ((1 - epsilon) / best.sum(axis=1) + by_chance)[:, None], by_chance[:, None])
    cumulative = propensities.cumsum(axis=1)
    found: Indexes = (cumulative <= (chance * cumulative[:, -1])[:, None]).sum(axis=1)
    return found


def simulate_batched(plan: Plan, check: Sequence[int] = ()) -> tuple[Results, int]:
    """Run a plan; return its results, and how many of the lives to check were chosen for as `roll_out` does.

    Regrets are not computed.
    """
    lives = Lives(plan)
    points = plan.bins + len(plan.stages)
    shape = (len(plan.arms), len(plan.world.personas), len(plan.seeds), len(METRICS), points)
    sums, same = np.zeros(shape), 0
    for number, arm in enumerate(with_simulated_prior(one, plan.world) for one in plan.arms):
        played = play(lives, arm)
        for life, unit in enumerate(lives.units):
            values = np.array([*(column[life] for column in played[1:]), np.full(plan.steps, np.nan)])
            sums[number, unit.persona, plan.seeds.index(unit.seed)] = sum_bins(values, plan)
        same += sum(_as_rolled_out(lives, arm, life, played) for life in check)
    return Results(plan, sums), same


def _as_rolled_out(lives: Lives, arm: Arm, life: int, played: Played) -> bool:
    persona, seed = lives.units[life]
    draws: Draws = lives.draws[life]
    world = lives.plan.world
    one = roll_out(world, world.personas[persona], seed, draws, arm, InProcess(arm.policy))
    return np.array_equal(one.chosen, played.chosen[life]) and np.allclose(one.rewards, played.rewards[life])
