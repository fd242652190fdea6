"""A check for continuous integration: fails only on evidence that a (model, prompt) lost, never on a lower mean."""

import re
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from tipbench.bench.compare.against import compare_against
from tipbench.bench.compare.comparison import compare_rows
from tipbench.bench.compare.effects import p_text
from tipbench.bench.compare.leaderboard import Leaderboard, prompt_label, row_label
from tipbench.bench.compare.rows import Rows
from tipbench.bench.tracking.decisions import DecisionSummary
from tipbench.core.errors import InvalidInput


@dataclass(frozen=True)
class CheckResult:
    """Whether the named row is still the best, as an outcome and as a sentence."""

    outcome: Literal["held", "lost", "open"]  # open: can't be determined
    sentence: str
    row: str = ""  # its label
    is_shown: bool = False  # whether evidence says that it gained as much as was wanted; else that may be chance


def check_row(board: Leaderboard, named: str, min_gain: float) -> CheckResult:
    """Compare the named row with the best other row: lost if it drops out of the top group when lowered by `min_gain`.

    With a gain of 0 that means it is not in the top group, in which a proven winner is alone; a negative gain tolerates
    a loss of that size.
    """
    index = find_row(board, named)
    label = _label(board, index)
    if board.decision:
        return _by_decision(board.decision, label, min_gain)
    if not board.grid.rows[index].scores:
        return _undecided(label, f"{label} has no scores yet")
    found = compare_rows(_lowered(board.grid, index, min_gain))
    rank = found.ranks[index]
    if rank is None or rank.top is None or rank.p_top is None:
        return _undecided(label, " ".join([f"nothing can be said about {label}.", *found.notes]).rstrip("."))
    means = [
        fmean(row.scores[one]["composite"] for one in found.scenarios)
        for order, (row, other_rank) in enumerate(zip(board.grid.rows, found.ranks, strict=True))
        if other_rank and order != index
    ]
    gain = fmean(board.grid.rows[index].scores[one]["composite"] for one in found.scenarios) - max(means)
    alone = rank.top and not any(one.top for one in found.ranks if one and one is not rank)
    is_shown = alone and not board.provisional
    return _result(label, "the best other row", gain, min_gain, None if rank.top else rank.p_top, is_shown)


def _by_decision(decision: DecisionSummary, label: str, min_gain: float) -> CheckResult:
    if min_gain:
        return _undecided(
            label, f"a decision in rounds says who is the best, not by how much ({min_gain:+.2f} was wanted)"
        )
    if label in decision.out:
        return CheckResult("lost", f"{label} lost: the decision has put it out.", label)
    if decision.decided and label == decision.pick:
        return CheckResult("held", f"{label} held: {decision.says}", label, decision.proven)
    return _undecided(label, f"the decision has not put {label} out")


def check_against(board: Leaderboard, named: str, min_gain: float, other: str, before: Rows) -> CheckResult:
    """Compare the named row with itself in another experiment: lost if its gain is significantly below `min_gain`."""
    index = find_row(board, named)
    label = _label(board, index)
    only = board.grid.in_order([index])
    if not only.rows[0].scores:
        return _undecided(label, f"{label} has no scores yet")
    if not any(row.name == only.rows[0].name for row in before.rows):
        there = ", ".join(" × ".join(row.name) for row in before.rows)
        raise InvalidInput(
            f"--gate: '{other}' has no {' × '.join(only.rows[0].name)} to hold it against; it has {there}"
        )
    same = before.in_order([index for index, row in enumerate(before.rows) if row.name == only.rows[0].name])
    if not any(one.scores.keys() & only.rows[0].scores.keys() for one in same.rows):
        return _undecided(label, f"no scenario of {label} has scores in '{other}' too")
    found = compare_against(board.experiment, _lowered(only, 0, min_gain), other, same)
    change = found.changes[0]
    if change.p is None:
        return _undecided(label, " ".join([f"nothing can be said about {label}.", *found.notes]).rstrip("."))
    lost = change.p if change.verdict == "worse" else None
    is_shown = change.verdict == "better" and not board.provisional
    return _result(label, f"itself in '{other}'", change.change + min_gain, min_gain, lost, is_shown)


def require_evidence(result: CheckResult) -> CheckResult:
    """Return the result for a check that has to be shown by evidence: what may be chance is undecided."""
    if result.outcome != "held" or result.is_shown:
        return result
    says = result.sentence.replace(f"{result.row} held: ", f"too little is known about {result.row}: ", 1).rstrip(".")
    return replace(result, outcome="open", sentence=f"{says}; that it gained as much as was wanted is not shown.")


def _label(board: Leaderboard, index: int) -> str:
    label = row_label(board, board.rows[index])
    return f"{label} (provisional scores)" if board.provisional and board.judges else label


def _undecided(label: str, why: str) -> CheckResult:
    return CheckResult("open", f"{why}, so the gate is undecided.", label)


def _result(
    label: str, reference: str, gain: float, min_gain: float, p_lost: float | None, is_shown: bool
) -> CheckResult:
    text = f"a gain of {gain:+.2f} over {reference}"
    if p_lost is not None:
        return CheckResult(
            "lost",
            f"{label} lost: {text} is below the wanted {min_gain:+.2f} by more than chance ({p_text(p_lost)}).",
            label,
        )
    if gain < min_gain:
        says = f"{text} is below the wanted {min_gain:+.2f}, but that may be chance."
        return CheckResult("held", f"{label} held: {says}", label)
    return CheckResult("held", f"{label} held: {text}, wanted {min_gain:+.2f}.", label, is_shown)


def find_row(board: Leaderboard, named: str) -> int:
    """Return the index of the row that "model×prompt" names, with the prompt as labelled in the table.

    Raises InvalidInput if it names no row, or several.
    """
    rows = [row_label(board, row) for row in board.rows]
    if named.strip() in rows and rows.count(named.strip()) == 1:
        return rows.index(named.strip())
    model, sign, prompt = re.sub(r"\s*×\s*|\s+x\s+", "×", named.strip()).rpartition("×")
    found = [
        index
        for index, row in enumerate(board.rows)
        if row.model == model and prompt in (row.prompt, prompt_label(board, row))
    ]
    exact = [index for index in found if prompt_label(board, board.rows[index]) == prompt]
    if sign and len(exact or found) == 1:
        return (exact or found)[0]
    if found:
        several = ", ".join(f"'{rows[index]}'" for index in found)
        raise InvalidInput(f"--gate '{named}' fits several rows: {several}; name one of them")
    raise InvalidInput(
        f"--gate '{named}' names no row of '{board.experiment}', which has {', '.join(rows) or 'none'}; "
        f"write it as 'model×prompt'"
    )


def _lowered(rows: Rows, index: int, by: float) -> Rows:
    row = rows.rows[index]
    scores = {name: {**one, "composite": one["composite"] - by} for name, one in row.scores.items()}
    changed = replace(row, scores=scores)
    return replace(rows, rows=(*rows.rows[:index], changed, *rows.rows[index + 1 :]))
