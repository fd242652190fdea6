"""A replay on a terminal: the answer first, then what it rests on."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from tipbench.bandit.features.v2 import V2
from tipbench.cli.leaderboard import empty_table
from tipbench.cli.workplace import out
from tipbench.untrusted import printable

_HEADS = {
    "passed": ("PASSED", "bold green"),
    "failed": ("NOT PASSED", "bold red"),
    "thin": ("TOO THIN", "bold yellow"),
}
_LEFT_OUT = {
    "no_chance": "left some candidates no chance, as LinUCB does",
    "no_choice": "had one candidate only",
    "no_reward": "got no reward",
    "no_decision": "are rewards whose decisions are not in the log",
}


def show_replay(found: Mapping[str, Any], kept_as: str) -> None:
    verdict = found["verdict"]
    head, style = _HEADS[verdict["status"]]
    out.print(printable(f"{head}: {found['candidate']['name']} against what was served"), style=style)
    out.print(printable(verdict["reason"]), soft_wrap=True)
    out.print()
    for line in _basis(found):
        out.print(printable(line), soft_wrap=True)
    if found["served"]:
        out.print(_table(found))
        out.print(
            "gain: against what was served, on the same decisions. ±: the 95 % interval, with users as its units.",
            style="dim",
            soft_wrap=True,
        )
    out.print(kept_line(kept_as))


def kept_line(kept_as: str) -> str:
    return f"Kept as replay {kept_as}."


def _basis(found: Mapping[str, Any]) -> list[str]:
    lines = [
        f"{found['log']['decisions']:,} decisions can be replayed; the candidate learned from {found['learned']:,} and "
        f"was put to {found['evaluated']:,} of {found['users']:,} users.",
    ]
    left_out = [f"{count:,} {_LEFT_OUT[why]}" for why, count in found["log"]["left_out"].items() if count]
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
    return lines


def _table(found: Mapping[str, Any]) -> Table:
    table = empty_table("Reward a decision")
    table.add_column("by", no_wrap=True)
    for name in ("mean", "gain"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_row("what was served", _text(found["served"], ""), "")
    for name, of in found["estimates"].items():
        mark = " (decides)" if name == found["decides"] else ""
        table.add_row(f"{found['candidate']['name']}, {name}{mark}", _text(of["value"], ""), _text(of["gain"], "+"))
    return table


def _text(estimate: Mapping[str, float | None], sign: str) -> str:
    mean, margin = estimate["mean"], estimate["margin"]
    if mean is None:
        return "not known"
    return f"{mean:{sign}.4f}" + ("" if margin is None else f" ± {margin:.4f}")
