"""A leaderboard as JSON, CSV or Markdown. The terminal's table is drawn by the command line."""

import csv
import io
from collections.abc import Callable, Mapping
from typing import Any

from tipbench.compare.leaderboard import Leaderboard
from tipbench.identity import SHORT
from tipbench.records import Standing
from tipbench.untrusted import inert_in_spreadsheets, json_text, printable


def headline(board: Leaderboard) -> str:
    """Where the figures come from, in a sentence."""
    counts = f"{board.judged} cells judged, {board.pending} pending, {board.failed} failed"
    if not board.judges:
        by_rule = f" ({board.judged} answers without a usable candidate score the minimum)" if board.judged else ""
        return f"No judge has scored anything yet{by_rule}: {counts}."
    names = ", ".join(_with_kappa(judge, board.kappas.get(judge, {})) for judge in board.judges)
    if board.provisional:
        return f"PROVISIONAL: scored by rules, {names}, not yet by a person or an agent: {counts}."
    return f"Judged by {names} against {board.rubric}: {counts}."


def _with_kappa(judge: str, kappas: Mapping[str, float | None]) -> str:
    """A judge's name with how far it agrees with the anchors, criterion by criterion."""
    if not kappas:
        return f"{judge} (κ not assessable)"
    return f"{judge} (κ {'/'.join('–' if value is None else f'{value:.2f}' for value in kappas.values())})"


def warnings(board: Leaderboard) -> list[str]:
    """What a reader must know before comparing rows."""
    found = []
    if board.uneven:
        found.append("Rows were scored on different scenarios, so their means compare different things.")
    if board.other_rubrics:
        found.append(f"{board.other_rubrics} cells are scored by another rubric and count as pending here.")
    return found


def prompt_label(board: Leaderboard, standing: Standing) -> str:
    """The prompt's version, with whatever else tells this row from others of the same model and version."""
    alike = [s for s in board.standings if (s.model, s.prompt) == (standing.model, standing.prompt)]
    label = standing.prompt
    if len({s.prompt_digest for s in alike}) > 1:
        label += f"@{standing.prompt_digest[:SHORT]}"
    varying = [key for key in standing.settings if len({s.settings.get(key) for s in alike}) > 1]
    told = ", ".join(f"{key}={standing.settings[key][:SHORT]}" for key in varying)
    return f"{label} ({told})" if told else label


def ranked(board: Leaderboard) -> list[tuple[int | None, Standing]]:
    """Rows with their rank; equal composites share one, and without a judge there is none."""
    ranks: list[tuple[int | None, Standing]] = []
    for place, standing in enumerate(board.standings, start=1):
        before = ranks[-1] if ranks else None
        same = before is not None and before[1].composite == standing.composite
        rank = before[0] if before is not None and same else place
        ranks.append((rank if board.judges and standing.composite is not None else None, standing))
    return ranks


def rows(board: Leaderboard) -> list[dict[str, Any]]:
    return [
        {
            "rank": rank,
            "model": standing.model,
            "prompt": standing.prompt,
            "prompt_digest": standing.prompt_digest,
            **{f"setting.{key}": value for key, value in standing.settings.items()},
            "composite": standing.composite,
            **{name: standing.means.get(name) for name in board.scores if name != "composite"},
            "scored": standing.scored,
            "judged": standing.judged,
            "pending": standing.pending,
            "failed": standing.failed,
            "empty": standing.empty,
            "candidates": standing.candidates,
            "wall_s": standing.wall_s,
            "generate_s": standing.generate_s,
            "output_tokens": standing.output_tokens,
            "diversity": standing.diversity,
        }
        for rank, standing in ranked(board)
    ]


def as_json(board: Leaderboard) -> str:
    return json_text(
        {
            "experiment": board.experiment,
            "rubric": {"name": board.rubric, "digest": board.rubric_digest},
            "judges": list(board.judges),
            "kappas": {judge: dict(found) for judge, found in board.kappas.items()},
            "provisional": board.provisional,
            "cells": {"judged": board.judged, "pending": board.pending, "failed": board.failed},
            "scored_by_other_rubrics": board.other_rubrics,
            "uneven": board.uneven,
            "standings": rows(board),
        }
    )


def as_csv(board: Leaderboard) -> str:
    out = io.StringIO()
    table = [{**row, "provisional": board.provisional} for row in rows(board)]
    writer = csv.DictWriter(out, list(table[0]) if table else ["rank"], lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: inert_in_spreadsheets(value) for key, value in row.items()} for row in table)
    return out.getvalue().rstrip("\n")


def as_markdown(board: Leaderboard) -> str:
    names = ["composite", *(name for name in board.scores if name != "composite")]
    head = ["#", "model", "prompt", *names, "judged", "pending", "failed", "empty", "texts/cell", "s/cell"]
    lines = [f"**{headline(board)}**", *warnings(board), "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for rank, standing in ranked(board):
        figures = [figure(standing.means.get(name)) for name in names]
        counts = [str(n) for n in (standing.judged, standing.pending, standing.failed, standing.empty)]
        counts += [figure(standing.candidates), figure(standing.wall_s)]
        label = [_cell(standing.model), _cell(prompt_label(board, standing))]
        place = str(rank) if rank else "–"
        lines.append(f"| {' | '.join([place, *label, *figures, *counts])} |")
    return "\n".join(lines)


def figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _cell(text: str) -> str:
    return printable(text, 200).replace("|", "\\|")


FORMATS: Mapping[str, Callable[[Leaderboard], str]] = {
    "json": as_json,
    "csv": as_csv,
    "markdown": as_markdown,
}
