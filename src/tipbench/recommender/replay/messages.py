"""What a replay rests on, in sentences: the same in a terminal and on a page."""

from collections.abc import Mapping
from typing import Any

from tipbench.core.untrusted import printable
from tipbench.recommender.features.v2 import V2

_LEFT_OUT = {
    "no_chance": "left some candidates no chance, as LinUCB does",
    "no_choice": "had one candidate only",
    "no_reward": "got no reward",
    "no_decision": "are rewards whose decisions are not in the log",
}


def basis(found: Mapping[str, Any]) -> list[str]:
    """From a replay as data."""
    lines = [
        f"{found['log']['decisions']:,} decisions can be replayed; the candidate learned from {found['learned']:,} and "
        f"was put to {found['evaluated']:,} of {found['users']:,} users.",
    ]
    left_out = [f"{count:,} {_LEFT_OUT.get(why, why)}" for why, count in found["log"]["left_out"].items() if count]
    if left_out:
        lines.append(f"Left out: {'; '.join(left_out)}.")
    without = found["evaluated"] - found["with_profile"]
    if without and found["candidate"]["feature_version"] == V2.version:
        lines.append(
            f"{without:,} of these came without profile_features by category; there {found['candidate']['name']} sees "
            "no more than version 1 does. Send them with every request."
        )
    if found["evaluated"]:
        lines.append(
            f"Effective sample: {found['effective_sample']:,.0f}; {found['rules']['least_effective']:,.0f} are needed. "
            f"Largest weight: {found['largest_weight']:,.1f}."
        )
    if found["log"].get("folder"):
        lines.append(f"Log: {printable(found['log']['folder'])}")
    return lines


def estimate_text(estimate: Mapping[str, float | None], sign: str = "") -> str:
    """With what it may be off by, where that can be told."""
    mean, margin = estimate["mean"], estimate["margin"]
    if mean is None:
        return "not known"
    return f"{mean:{sign}.4f}" + ("" if margin is None else f" ± {margin:.4f}")
