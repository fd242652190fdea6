"""Is the evidence enough, and does it speak for the candidate?

The doubly robust estimate decides: of the three it is the one whose intervals are both honest and narrow
(benchmarks/replay_coverage.py).
"""

from dataclasses import dataclass
from math import ceil
from typing import Literal

from tipbench.recommender.replay.evaluation import DR, Estimated, Evaluation

Status = Literal["passed", "failed", "thin"]
DECIDES = DR


@dataclass(frozen=True)
class Rules:
    least_effective: float = 200.0  # decisions of equal weight
    fewest_users: int = 10  # below, an interval over users says next to nothing


RULES = Rules()


@dataclass(frozen=True)
class Verdict:
    status: Status
    reason: str

    @property
    def passed(self) -> bool:
        return self.status == "passed"


def judged(evaluation: Evaluation, rules: Rules = RULES) -> tuple[Estimated | None, Verdict]:
    """No estimates where nothing was evaluated."""
    if not len(evaluation.columns.rewards):
        return None, Verdict(
            "thin", "no decision of the log can be replayed; serve with egreedy or egreedy/v2, and send rewards"
        )
    found = Estimated(evaluation.columns)
    return found, _verdict(found, len(evaluation.rounds), rules)


def _verdict(found: Estimated, decisions: int, rules: Rules) -> Verdict:
    effective = found.weights.effective_sample
    if effective < rules.least_effective:
        more = (
            "nobody can tell how many more decisions it would take: the candidate would have made none of these choices"
        )
        if effective:
            more = f"it would take about {_rounded(decisions * (rules.least_effective / effective - 1))} more decisions"
        return Verdict(
            "thin",
            f"the evidence is too thin: an effective sample of {effective:.0f}, and {rules.least_effective:.0f} are "
            f"needed; {more}",
        )
    if found.served.users < rules.fewest_users:
        return Verdict(
            "thin",
            f"the evidence is too thin: decisions for {found.served.users} users, and {rules.fewest_users} are needed",
        )
    gain = found.gains[DECIDES]
    low, high = gain.interval
    passed = low > 0
    return Verdict(
        "passed" if passed else "failed",
        f"by {DECIDES} the candidate earns {gain.value:+.4f} a decision against what was served, "
        f"{low:+.4f} to {high:+.4f} with 95 % confidence; the lower end has to be above 0",
    )


def _rounded(decisions: float) -> str:
    """Two digits: it is a guess."""
    scale = 10 ** max(0, len(str(int(decisions))) - 2)
    return f"{ceil(decisions / scale) * scale:,}"
