"""A gate for continuous integration: it closes only on evidence that a (model, prompt) lost, never on a lower mean."""

import re
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from tipbench.bench.compare.against import compare_against
from tipbench.bench.compare.comparison import compare_rows
from tipbench.bench.compare.effects import p_text
from tipbench.bench.compare.leaderboard import Leaderboard
from tipbench.bench.compare.messages import prompt_label, row_label
from tipbench.bench.compare.rows import Rows
from tipbench.core.errors import InvalidInput


@dataclass(frozen=True)
class Gated:
    """Whether the named row is still the best, in a word and in a sentence."""

    outcome: Literal["held", "lost", "open"]  # open: that can't be told
    sentence: str


def gate(board: Leaderboard, named: str, min_gain: float) -> Gated:
    """Against the best of the other rows: lost, if the row would be shut out of the top group, lowered by the gain.

    With a gain of 0 that is: it is not in the top group. A negative gain allows for so much of a loss.
    """
    index = find_row(board, named)
    label = _label(board, index)
    if not board.grid.rows[index].scores:
        return _open(f"{label} has no scores yet")
    found = compare_rows(_lowered(board.grid, index, min_gain))
    rank = found.ranks[index]
    if rank is None or rank.top is None or rank.p_top is None:
        return _open(" ".join([f"nothing can be told about {label}.", *found.notes]).rstrip("."))
    means = [
        fmean(row.scores[one]["composite"] for one in found.scenarios)
        for order, (row, placed) in enumerate(zip(board.grid.rows, found.ranks, strict=True))
        if placed and order != index
    ]
    gain = fmean(board.grid.rows[index].scores[one]["composite"] for one in found.scenarios) - max(means)
    return _gated(label, "the best other row", gain, min_gain, None if rank.top else rank.p_top)


def gate_against(board: Leaderboard, named: str, min_gain: float, other: str, before: Rows) -> Gated:
    """Against the same row in another experiment: lost, if its gain is below the wanted one by more than chance."""
    index = find_row(board, named)
    label = _label(board, index)
    only = board.grid.in_order([index])
    if not only.rows[0].scores:
        return _open(f"{label} has no scores yet")
    if not any(row.name == only.rows[0].name for row in before.rows):
        there = ", ".join(" × ".join(row.name) for row in before.rows)
        raise InvalidInput(
            f"--gate: '{other}' has no {' × '.join(only.rows[0].name)} to hold it against; it has {there}"
        )
    same = before.in_order([index for index, row in enumerate(before.rows) if row.name == only.rows[0].name])
    if not any(one.scores.keys() & only.rows[0].scores.keys() for one in same.rows):
        return _open(f"no scenario of {label} has scores in '{other}' too")
    found = compare_against(board.experiment, _lowered(only, 0, min_gain), other, same)
    change = found.changes[0]
    if change.p is None:
        return _open(" ".join([f"nothing can be told about {label}.", *found.notes]).rstrip("."))
    lost = change.p if change.verdict == "worse" else None
    return _gated(label, f"itself in '{other}'", change.change + min_gain, min_gain, lost)


def _label(board: Leaderboard, index: int) -> str:
    label = row_label(board, board.rows[index])
    return f"{label} (provisional scores)" if board.provisional and board.judges else label


def _open(why: str) -> Gated:
    return Gated("open", f"{why}, so the gate stays open.")


def _gated(label: str, reference: str, gain: float, min_gain: float, p_lost: float | None) -> Gated:
    told = f"a gain of {gain:+.2f} over {reference}"
    if p_lost is not None:
        return Gated(
            "lost", f"{label} lost: {told} is below the wanted {min_gain:+.2f} by more than chance ({p_text(p_lost)})."
        )
    if gain < min_gain:
        return Gated("held", f"{label} held: {told} is below the wanted {min_gain:+.2f}, but that may be chance.")
    return Gated("held", f"{label} held: {told}, wanted {min_gain:+.2f}.")


def find_row(board: Leaderboard, named: str) -> int:
    """The place of the row that "model×prompt" names; the prompt as it stands in the table."""
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
