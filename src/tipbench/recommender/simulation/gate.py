"""The promotion gate: whether the candidate beats the incumbent, by a test that a worse policy fails.

    verdict = judge(results)    # of a plan whose arms are gate_arms(candidate, incumbent)

Four arms are simulated: the candidate, the incumbent, the incumbent again with other random numbers, and a placebo,
which is the candidate with its new dimensions assigned to the wrong tips. The last two are tested against the same
conditions every time and must fail: a gate that lets them pass proves nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tipbench.recommender.simulation.experiment import Results
from tipbench.recommender.simulation.rollout import Arm, placebo_of
from tipbench.statistics.paired import Difference, difference, holm_wins


@dataclass(frozen=True)
class Rules:
    """The thresholds, tuned on seeds that no gate and no measurement uses (docs/decisions/0002)."""

    least_gain: float = 0.01  # for the pooled lower bound, in reward per decision
    least_wins: float = 0.6  # share of the personas that are not controls
    worst_loss: float = 0.05  # no persona's lower bound may be below minus this
    level: float = 0.95


@dataclass(frozen=True)
class Size:
    """The size of the simulation. The gate's error rates are known for the default one."""

    seeds: int = 30
    steps: int = 200
    offered: int = 10


RULES = Rules()
DEFAULT_SIZE = Size()
FIRST_SEED = 10_000  # lower ones were used to tune the thresholds


@dataclass(frozen=True)
class Condition:
    name: str
    passed: bool
    reason: str


@dataclass(frozen=True)
class PersonaGain:
    """One persona's gain with the candidate."""

    persona: str
    control: bool
    gain: Difference
    lower_bound: float  # at a level corrected for the number of personas
    wins: bool  # by Holm's adjustment


@dataclass(frozen=True)
class Comparison:
    """One arm compared with the incumbent."""

    arm: str
    pooled: Difference
    pooled_bound: float
    personas: tuple[PersonaGain, ...]
    conditions: tuple[Condition, ...]

    @property
    def passed(self) -> bool:
        return all(condition.passed for condition in self.conditions)


@dataclass(frozen=True)
class Verdict:
    candidate: Comparison
    checks: tuple[Condition, ...]  # that arms which must fail do fail

    @property
    def passed(self) -> bool:
        return self.candidate.passed and all(check.passed for check in self.checks)


def gate_arms(candidate: Arm, incumbent: Arm) -> tuple[Arm, ...]:
    """Return all arms to simulate. A candidate without new dimensions has no placebo."""
    again = replace(incumbent, name=f"{incumbent.name}, again", luck="-again")
    placebo = placebo_of(candidate, incumbent)
    return (candidate, incumbent, again, *([placebo] if placebo else []))


def judge(results: Results, rules: Rules = RULES) -> Verdict:
    """Judge the candidate from results whose arms are those of `gate_arms`."""
    candidate, incumbent, again, *placebo = results.plan.arms
    of_candidate = compare(results, candidate, incumbent, rules)
    checks = [_fails(compare(results, again, incumbent, rules), "the incumbent with other random numbers")]
    checks += [
        _fails(compare(results, arm, incumbent, rules), "the candidate with its new features permuted")
        for arm in placebo
    ]
    return Verdict(of_candidate, tuple(checks))


def compare(results: Results, arm: Arm, incumbent: Arm, rules: Rules = RULES) -> Comparison:
    gains = results.means(arm.name) - results.means(incumbent.name)
    pooled = difference(gains.mean(axis=0))
    differences = [difference(row) for row in gains]
    personas = results.plan.world.personas
    shared = 1 - (1 - rules.level) / len(personas)
    counted = [index for index, persona in enumerate(personas) if not persona.control]
    won = dict(zip(counted, holm_wins([differences[index] for index in counted], 1 - rules.level), strict=True))
    by_persona = tuple(
        PersonaGain(persona.name, persona.control, gain, gain.lower_bound(shared), won.get(index, False))
        for index, (persona, gain) in enumerate(zip(personas, differences, strict=True))
    )
    bound = pooled.lower_bound(rules.level)
    conditions = (_gains(bound, rules), _wins(by_persona, rules), _harms_nobody(by_persona, rules))
    return Comparison(arm.name, pooled, bound, by_persona, conditions)


def _gains(bound: float, rules: Rules) -> Condition:
    return Condition(
        "gains overall",
        bound > rules.least_gain,
        f"over all personas its gain in reward per decision is {bound:+.4f} or more, with {100 * rules.level:g} % "
        f"confidence; more than {rules.least_gain:+.4f} is needed",
    )


def _wins(personas: Sequence[PersonaGain], rules: Rules) -> Condition:
    counted = [persona for persona in personas if not persona.control]
    won = [persona.persona for persona in counted if persona.wins]
    needed = wins_needed(len(counted), rules)
    names = f" ({', '.join(won)})" if won else ""
    return Condition(
        "wins with enough personas",
        len(won) >= needed,
        f"it is better for {len(won)} of {len(counted)} personas other than controls{names}; {needed} are needed",
    )


def wins_needed(personas: int, rules: Rules) -> int:
    """Return how many personas must win, rounded up: 5 of 7, because 4 are less than 60 %."""
    return max(1, math.ceil(rules.least_wins * personas))


def _harms_nobody(personas: Sequence[PersonaGain], rules: Rules) -> Condition:
    worst = min(personas, key=lambda persona: persona.lower_bound)
    return Condition(
        "harms nobody",
        worst.lower_bound > -rules.worst_loss,
        f"the persona with the lowest bound is {worst.persona}: {worst.lower_bound:+.4f}; "
        f"more than {-rules.worst_loss:+.4f} is needed",
    )


def _fails(comparison: Comparison, who: str) -> Condition:
    failed = [condition.name for condition in comparison.conditions if not condition.passed]
    does = f"fails as it should, on: {', '.join(failed)}" if failed else "passes, so this gate can't tell good from bad"
    return Condition(f"{comparison.arm} fails", bool(failed), f"{who} {does}")


def as_data(verdict: Verdict) -> dict[str, Any]:
    """Return the verdict as plain data for JSON."""
    return {
        "passed": verdict.passed,
        "pooled": {"gain": verdict.candidate.pooled.mean, "lower_bound": verdict.candidate.pooled_bound},
        "conditions": [vars(condition) for condition in (*verdict.candidate.conditions, *verdict.checks)],
        "personas": [
            {
                "persona": persona.persona,
                "control": persona.control,
                "gain": persona.gain.mean,
                "lower_bound": persona.lower_bound,
                "wins": persona.wins,
            }
            for persona in verdict.candidate.personas
        ],
    }
