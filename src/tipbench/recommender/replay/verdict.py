"""Decide whether a replay's evidence is sufficient, and whether it favours the candidate.

The doubly robust estimate decides: of the three, it is the one whose intervals are both well calibrated and narrow
(benchmarks/replay_coverage.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal

from tipbench.core.text import utc_minute
from tipbench.core.untrusted import printable
from tipbench.recommender.features.v2 import V2
from tipbench.recommender.features.v3 import V3
from tipbench.recommender.replay.evaluation import DR, Estimated, Evaluation

Status = Literal["passed", "failed", "undecided", "thin"]
DECIDES = DR
_LEFT_OUT = {
    "no_chance": "gave some candidates no chance, as LinUCB does",
    "no_choice": "had one candidate only",
    "no_reward": "got no reward",
    "no_decision": "are rewards whose decisions are not in the log",
}


@dataclass(frozen=True)
class Rules:
    least_effective: float = 200.0  # in equally weighted decisions
    fewest_users: int = 10  # with fewer, an interval over users is close to meaningless


RULES = Rules()


@dataclass(frozen=True)
class Verdict:
    status: Status
    reason: str

    @property
    def passed(self) -> bool:
        return self.status == "passed"


def judge(evaluation: Evaluation, rules: Rules = RULES) -> tuple[Estimated | None, Verdict]:
    """Return the estimates and the verdict on them; the estimates are None if no decision was evaluated."""
    if not len(evaluation.columns.rewards) and evaluation.fitted:
        return None, Verdict(
            "thin",
            f"the candidate's prior was fitted to all {evaluation.fitted:,} decisions that it could be tested on; "
            "replay it again once more has been served",
        )
    if not len(evaluation.columns.rewards):
        return None, Verdict(
            "thin", "no decision of the log can be replayed; serve with a policy other than linucb, and send rewards"
        )
    found = Estimated(evaluation.columns)
    return found, _verdict(found, len(evaluation.rounds), rules)


def _verdict(found: Estimated, decisions: int, rules: Rules) -> Verdict:
    effective = found.weights.effective_sample
    if effective < rules.least_effective:
        more = "how many more decisions it would take is unknown: the candidate would have made none of these choices"
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
    found_gain = (
        f"by {DECIDES} the candidate's gain per decision over what was served is {gain.value:+.4f}, {low:+.4f} "
        f"to {high:+.4f} with 95 % confidence"
    )
    if low > 0:
        return Verdict("passed", f"the candidate would have earned more: {found_gain}")
    if high < 0:
        return Verdict("failed", f"the candidate would have earned less: {found_gain}")
    return Verdict("undecided", f"the log can't tell whether the candidate earns more or less: {found_gain}")


def _rounded(decisions: float) -> str:
    """Round up to two significant digits, as it is only an estimate."""
    scale = 10 ** max(0, len(str(int(decisions))) - 2)
    return f"{ceil(decisions / scale) * scale:,}"


# Texts about a replay, shared by the terminal and the web page.


def basis(found: Mapping[str, Any]) -> list[str]:
    """Return sentences about the data that a replay is based on, from the replay as plain data."""
    lines = [
        f"{found['log']['decisions']:,} decisions can be replayed; the candidate learned from {found['learned']:,} "
        f"and was tested on {found['evaluated']:,} of {found['users']:,} users.",
    ]
    left_out = [f"{count:,} {_LEFT_OUT.get(why, why)}" for why, count in found["log"]["left_out"].items() if count]
    if left_out:
        lines.append(f"Left out: {'; '.join(left_out)}.")
    if found.get("fitted"):
        lines.append(f"Not tested on {found['fitted']:,} decisions, because the candidate's prior was fitted to them.")
    without = found["evaluated"] - found["with_profile"]
    if without and found["candidate"]["feature_version"] in (V2.version, V3.version):
        lines.append(
            f"{without:,} of these came without profile_features by category, so {found['candidate']['name']} saw no "
            "more than version 1 does. Send them with every request."
        )
    if found["evaluated"]:
        lines.append(
            f"Effective sample: {found['effective_sample']:,.0f}; {found['rules']['least_effective']:,.0f} are needed. "
            f"Largest weight: {found['largest_weight']:,.1f}."
        )
    if found["log"].get("folder"):
        first_ms, last_ms = found["log"].get("first_ms"), found["log"].get("last_ms")
        times = "" if first_ms is None else f", decisions from {utc_minute(first_ms)} to {utc_minute(last_ms)}"
        lines.append(f"Log: {printable(found['log']['folder'])}{times}")
    return lines


def estimate_text(estimate: Mapping[str, float | None], sign: str = "") -> str:
    """Format an estimate with its margin, if it has one."""
    mean, margin = estimate["mean"], estimate["margin"]
    if mean is None:
        return "not known"
    return f"{mean:{sign}.4f}" + ("" if margin is None else f" ± {margin:.4f}")
