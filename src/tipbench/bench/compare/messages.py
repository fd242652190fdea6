"""A leaderboard in sentences, the same on the terminal, in Markdown and in the report; and its data formats."""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from tipbench.bench.compare.answer import answer_of, beats_others, first_failure
from tipbench.bench.compare.answer import as_data as answer_data
from tipbench.bench.compare.effects import FactorEffects, GridEffects, evidence, p_text, prompt_sentence
from tipbench.bench.compare.leaderboard import Leaderboard, prompt_label, row_label
from tipbench.bench.compare.leaderboard_row import LeaderboardRow
from tipbench.bench.records import BY_CODE, NextStep, experiment_command
from tipbench.bench.records import LEAST_AGREEMENT as LEAST_AGREEMENT  # for templates
from tipbench.core.text import capital, plural
from tipbench.core.untrusted import csv_text, json_text, markdown_text
from tipbench.statistics.planning import POWER, units_to_separate

_MAX_NAMED = 4  # rows named in a sentence
_MANY_SCENARIOS = 1_000
_MAX_DESCRIBED = 5  # rows in the experiment's description
_IN_CODE = re.compile(r"[\w ./:,'=>-]+")  # a command that means nothing else in Markdown
_COUNTS = ("scored", "judged", "pending", "failed", "missing", "empty")


def headline(board: Leaderboard) -> str:
    """Return a sentence on who scored the rows and how many cells are judged."""
    counts = _counts(board)
    if board.failed and board.failed == sum(row.cells for row in board.rows):
        first = first_failure(board)
        return f"All {board.failed} cells failed, the first with: {first}. 'collect --retry-failed' tries them again."
    if not board.judges and board.quarantined:
        return f"No judge's scores count yet; {_quarantine(board)}: {counts}."
    if not board.judges:
        return f"No judge has scored anything yet: {counts}."
    if board.is_by_code:
        return f"Scored by code, by the checks of {board.rubric}: {counts}."
    names = ", ".join(_with_kappa(judge, board.kappas.get(judge, {})) for judge in board.judges)
    if board.provisional:
        scored = f"{_quarantine(board)}" if board.quarantined else "not yet by a person or an agent"
        if board.has_counted_scores:
            scored = "although there are scores that count, which are not shown"
        return f"PROVISIONAL: scored by rules, {names}, {scored}: {counts}."
    quarantine = f" {capital(_quarantine(board))}." if board.quarantined else ""
    return f"Judged by {names} against {board.rubric}: {counts}.{quarantine}"


def hidden_provisional(board: Leaderboard) -> str:
    """Say that there are provisional scores beside the counted ones, and how to see them; empty if there are none."""
    if not board.hidden_provisional:
        return ""
    by = " and ".join(
        f"'{judge}' ({cells} {plural('cell', cells)})" for judge, cells in board.hidden_provisional.items()
    )
    return (
        f"Not shown: provisional scores by {by}, because counted scores exist. "
        f"'{experiment_command(board.experiment, 'compare', '--provisional')}' shows them."
    )


def _counts(board: Leaderboard) -> str:
    empty = f", {board.empty} without a usable candidate, which score the minimum" if board.empty else ""
    judged = "scored" if board.is_by_code else "judged"
    return f"{board.judged - board.empty} cells {judged}, {board.pending} pending, {board.failed} failed{empty}"


def _quarantine(board: Leaderboard) -> str:
    named = " and ".join(f"{judge} ({cells} {plural('cell', cells)})" for judge, cells in board.quarantined.items())
    return f"the scores of {named} are on hold and don't count ('tipbench judge --status' says why)"


def _with_kappa(judge: str, kappas: Mapping[str, float | None]) -> str:
    """Return a judge's name with its κ with the anchors, criterion by criterion."""
    if judge == BY_CODE:
        return judge
    if not kappas:
        return f"{judge} (κ not assessable)"
    return f"{judge} (κ {'/'.join('–' if value is None else f'{value:.2f}' for value in kappas.values())})"


def verdict(board: Leaderboard) -> list[str]:
    """Return sentences on what the scores show: the top group, and what it would take to show more."""
    sentences = []
    comparison = board.comparison
    compared = [row for row in board.rows if row.rank]
    if comparison.separable:
        sentences.append(f"{_basis(board)}, {_top_group(board, len(compared))}.")
    if comparison.separable and comparison.clusters:
        sentences.append(
            f"Whether that holds for other {plural(board.grid.unit_name, 2)}, {comparison.clusters} can't tell: "
            f"it takes {units_to_separate(len(compared))}."
        )
    sentences += comparison.notes
    return [*sentences, *_needed(board)]


def _basis(board: Leaderboard) -> str:
    comparison = board.comparison
    scenarios = f"{len(comparison.scenarios)} {plural('scenario', len(comparison.scenarios))}"
    if comparison.clusters:
        return f"For these {comparison.clusters} {plural(board.grid.unit_name, comparison.clusters)}, on {scenarios}"
    if comparison.unit == "scenario":
        return f"On {scenarios}"
    return f"On {scenarios} of {comparison.units} {plural(comparison.unit, comparison.units)}"


def _top_group(board: Leaderboard, compared: int) -> str:
    if len(board.top) == compared:
        which = "both" if compared == 2 else f"all {compared}"
        return f"no row is shown to be better than another: {which} may be the best"
    if len(board.top) == 1:
        p = board.comparison.winner_p
        how = "" if p is None else f": it {beats_others(board)} (weakest pair: {p_text(p)})"
        return f"{row_label(board, board.top[0])} is the best of {compared} rows{how}"
    return f"{len(board.top)} of {compared} rows may be the best: {_top_names(board)}"


def _top_names(board: Leaderboard) -> str:
    names = [row_label(board, row) for row in board.top]
    if len(names) <= _MAX_NAMED:
        return ", ".join(names)
    return f"{', '.join(names[: _MAX_NAMED - 1])} and {len(names) - _MAX_NAMED + 1} more, marked ●"


def _needed(board: Leaderboard) -> list[str]:
    needed, comparison = board.comparison.needed, board.comparison
    if needed is None or needed.more_units == 0:
        return []
    first, second = (row_label(board, board.rows[index]) for index in (needed.first, needed.second))
    if needed.more_units is None or needed.more_scenarios is None:
        return [f"{first} and {second} have the same mean there, so there is no gap to separate."]
    if needed.more_scenarios > _MANY_SCENARIOS:
        return [
            f"It would take more than {_MANY_SCENARIOS:,} more scenarios to separate {first} from {second}: "
            f"as far as these scores show, they are equal."
        ]
    more = f"{needed.more_scenarios} more {plural('scenario', needed.more_scenarios)}"
    if comparison.unit != "scenario":
        more += f", of {needed.more_units} new {plural(comparison.unit, needed.more_units)},"
    return [
        f"About {more} would separate {first} from {second} ({percent(POWER)} power), "
        f"if their gap of {needed.gap:.2f} stays as it is."
    ]


def effect_sentences(board: Leaderboard) -> list[str]:
    """Return sentences on the effects of models and of prompts; none where they can't be determined."""
    effects = board.effects
    if not isinstance(effects, GridEffects):
        return []
    sentences = []
    for what, factor in (("Models", effects.models), ("Prompts", effects.prompts)):
        if len(factor.levels) > 1:
            sizes = ", ".join(f"{level.name} {level.size:+.2f}" for level in factor.levels)
            sentences.append(f"{what}: {sizes}; {evidence(factor.p, factor.unit)}.")
    if len(effects.prompts.levels) > 1:
        sentences.append(prompt_sentence(effects))
    if effects.interaction_p is not None:
        sentences.append(f"That prompts work differently on different models: {evidence(effects.interaction_p, '')}.")
    return sentences


def warnings(board: Leaderboard) -> list[str]:
    """Return what a reader must know before comparing rows."""
    found = [said] if (said := hidden_provisional(board)) else []
    if board.uneven:
        found.append(
            "Rows were scored on different scenarios: each mean is over a row's own, so they compare different things."
        )
    if board.other_rubrics:
        found.append(f"{board.other_rubrics} cells are scored by another rubric and count as pending here.")
    if board.judges and board.gaps:
        found.append(
            f"{board.gaps} {plural('cell', board.gaps)} without a score: with all of them, a row's mean may lie "
            f"anywhere between 'if worst' and 'if best'."
        )
    return found


def figure(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def percent(share: float | None) -> str:
    """Format a probability, which is never rounded to a certainty."""
    if share is None:
        return "–"
    return "<1 %" if share < 0.01 else ">99 %" if share > 0.99 else f"{share:.0%}".replace("%", " %")


def range_text(low: float, high: float) -> str:
    return f"{low:.1f} – {high:.1f}"


# Output as JSON, CSV or Markdown. `cli` draws the terminal's table, and `html` the report.


def as_data(board: Leaderboard) -> dict[str, Any]:
    """Return the whole leaderboard as plain values, as the API sends it."""
    comparison = board.comparison
    needed = comparison.needed
    return {
        "experiment": board.experiment,
        "rubric": {"name": board.rubric, "digest": board.rubric_digest},
        "judges": list(board.judges),
        "kappas": {judge: dict(found) for judge, found in board.kappas.items()},
        "provisional": board.provisional,
        "cells": {
            "judged": board.judged,
            "pending": board.pending,
            "failed": board.failed,
            "missing": board.missing,
        },
        "scored_by_other_rubrics": board.other_rubrics,
        "uneven": board.uneven,
        "answer": answer_data(answer_of(board)),
        "decision": asdict(board.decision) if board.decision else None,
        "says": [headline(board), *verdict(board), *effect_sentences(board), *warnings(board)],
        "scales": {name: list(scale) for name, scale in board.scales.items()},
        "comparison": {
            "unit": comparison.unit,
            "units": comparison.units,
            "scenarios": list(comparison.scenarios),
            "level": comparison.level,
            "told": comparison.separable,
            "winner": None
            if comparison.winner is None
            else {**_name(board.rows[comparison.winner]), "p": comparison.winner_p},
            "needed": needed
            and {
                "first": _name(board.rows[needed.first]),
                "second": _name(board.rows[needed.second]),
                "gap": needed.gap,
                "more_units": needed.more_units,
                "more_scenarios": needed.more_scenarios,
            },
        },
        "effects": _effects(board.effects),
        "standings": [_row_data(board, row) for row in board.rows],
    }


def _name(row: LeaderboardRow) -> dict[str, str]:
    return {"model": row.model, "prompt": row.prompt, "prompt_digest": row.prompt_digest}


def _row_data(board: Leaderboard, row: LeaderboardRow) -> dict[str, Any]:
    rank = row.rank
    return {
        **_name(row),
        "settings": dict(row.settings),
        "top": rank.top if rank else None,
        "p_top": rank.p_top if rank else None,
        "p_best": rank.p_best if rank else None,
        "composite": row.composite,
        "scores": {
            name: {
                "mean": row.means[name],
                "low": row.intervals[name].low if name in row.intervals else None,
                "high": row.intervals[name].high if name in row.intervals else None,
            }
            for name in board.scores
            if name in row.means
        },
        "if_worst": row.extremes.low,
        "if_best": row.extremes.high,
        "scenarios": list(row.scenarios),
        **{name: getattr(row, name) for name in _COUNTS},
        "candidates": row.candidates,
        "diversity": row.diversity,
        "cost": asdict(row.cost),
        "on_front": row.on_front,
        "slices": {
            factor: {
                level: {
                    "means": dict(one.means),
                    "low": one.interval.low if one.interval else None,
                    "high": one.interval.high if one.interval else None,
                    "scenarios": one.scenarios,
                }
                for level, one in levels.items()
            }
            for factor, levels in row.slices.items()
        },
    }


def _effects(effects: GridEffects | str) -> dict[str, Any]:
    if isinstance(effects, str):
        return {"reason": effects}

    def factor(found: FactorEffects) -> dict[str, Any]:
        return {"unit": found.unit, "p": found.p, "levels": [asdict(level) for level in found.levels]}

    return {
        "models": factor(effects.models),
        "prompts": factor(effects.prompts),
        "interaction": {"p": effects.interaction_p},
        "best_prompts": {model: list(prompts) for model, prompts in effects.best_prompts.items()},
        "scenarios": effects.scenarios,
        "prompts_left_out": list(effects.left_out),
    }


def as_json(board: Leaderboard) -> str:
    return json_text(as_data(board))


def as_csv(board: Leaderboard) -> str:
    return csv_text([_flat(board, row) for row in board.rows]).rstrip("\n")


def _flat(board: Leaderboard, row: LeaderboardRow) -> dict[str, Any]:
    rank = row.rank
    line: dict[str, Any] = {
        **_name(row),
        **{f"setting.{key}": value for key, value in row.settings.items()},
        "top": rank.top if rank else None,
        "p_top": rank.p_top if rank else None,
        "p_best": rank.p_best if rank else None,
    }
    for name in ["composite", *(name for name in board.scores if name != "composite")]:
        interval = row.intervals.get(name)
        line[name] = row.means.get(name)
        line[f"{name}.low"], line[f"{name}.high"] = interval or (None, None)
    line |= {"if_worst": row.extremes.low, "if_best": row.extremes.high}
    line |= {name: getattr(row, name) for name in _COUNTS}
    line |= {"candidates": row.candidates, "diversity": row.diversity}
    line |= {f"cost.{name}": value for name, value in asdict(row.cost).items()}
    return {**line, "on_front": row.on_front, "provisional": board.provisional}


def as_markdown(board: Leaderboard) -> str:
    criteria = [name for name in board.scores if name != "composite"]
    head = ["top", "model", "prompt", "composite", "95 %", "best?", *criteria]
    head += [
        *(["if worst – if best"] if board.gaps else []),
        "judged",
        "pending",
        "failed",
        "empty",
        "s/cell",
        "tokens/s",
    ]
    answer, step = board.answer.sentences
    says = [headline(board), *verdict(board), *effect_sentences(board), *warnings(board)]
    lines = [
        f"**{markdown_text(answer)}**",
        "",
        markdown_text(step),
        "",
        f"| {' | '.join(head)} |",
        f"|{'---|' * len(head)}",
    ]
    for row in board.rows:
        interval = row.intervals.get("composite")
        rank = row.rank
        cells = [
            mark(row),
            markdown_text(row.model),
            markdown_text(prompt_label(board, row)),
            figure(row.composite),
            range_text(*interval) if interval else "–",
            percent(rank.p_best if rank else None),
            *(figure(row.means.get(name)) for name in criteria),
            *([range_text(*row.extremes)] if board.gaps else []),
            *(str(getattr(row, name)) for name in ("judged", "pending", "failed", "empty")),
            figure(row.cost.seconds),
            figure(row.cost.tokens_per_s, 1),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, *([""] if says else []), *(f"- {markdown_text(text)}" for text in says)])


def as_description(board: Leaderboard) -> str:
    """Return the answer, the next step and the first rows as Markdown, for the experiment's page in MLflow."""
    answer = described(board.answer.says, board.answer.next)
    if board.leader is None:
        return answer
    lines = [
        answer,
        "",
        "| may be the best | model × prompt | composite | 95 % | judged | pending | failed |".replace(" |", "&emsp;|"),
        "|---|---|---|---|---|---|---|",
    ]
    for row in board.rows[:_MAX_DESCRIBED]:
        interval = row.intervals.get("composite")
        figures = [figure(row.composite), range_text(*interval) if interval else "–"]
        figures += [str(count) for count in (row.judged, row.pending, row.failed)]
        lines.append(f"| {' | '.join([mark(row), markdown_text(row_label(board, row)), *figures])} |")
    more = len(board.rows) - _MAX_DESCRIBED
    if more > 0:
        lines += ["", f"{more} more {plural('variant', more)}: `tipbench compare`"]
    return "\n".join(lines)


def described(says: str, step: NextStep) -> str:
    """Return an answer and its next step as Markdown."""
    text = markdown_text(step.text)
    if step.command:
        text += f": `{step.command}`" if _IN_CODE.fullmatch(step.command) else f": {markdown_text(step.command)}"
    return f"{markdown_text(says)}\n\n**Next:** {text}"


def mark(row: LeaderboardRow) -> str:
    """Return whether a row may be the best: ● yes, empty: no, ? can't be determined, – no scores."""
    if row.composite is None:
        return "–"
    if row.rank is None or row.rank.top is None:
        return "?"
    return "●" if row.rank.top else ""


FORMATS: Mapping[str, Callable[[Leaderboard], str]] = {
    "json": as_json,
    "csv": as_csv,
    "markdown": as_markdown,
}
