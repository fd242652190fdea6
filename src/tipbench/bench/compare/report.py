"""A leaderboard as JSON, CSV or Markdown. The terminal's table is drawn by the command line, HTML by `html`."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from tipbench.bench.compare.effects import FactorEffects, GridEffects
from tipbench.bench.compare.leaderboard import Leaderboard
from tipbench.bench.compare.leaderboard_row import LeaderboardRow
from tipbench.bench.compare.messages import (
    effect_sentences,
    figure,
    headline,
    percent,
    prompt_label,
    range_text,
    verdict,
    warnings,
)
from tipbench.core.untrusted import csv_text, json_text, markdown_text


def as_data(board: Leaderboard) -> dict[str, Any]:
    """Everything that the leaderboard knows, as plain values; what the API answers with."""
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
        "says": [headline(board), *verdict(board), *effect_sentences(board), *warnings(board)],
        "scales": {name: list(scale) for name, scale in board.scales.items()},
        "comparison": {
            "unit": comparison.unit,
            "units": comparison.units,
            "scenarios": list(comparison.scenarios),
            "level": comparison.level,
            "told": comparison.told,
            "needed": needed
            and {
                "first": _name(board.standings[needed.first]),
                "second": _name(board.standings[needed.second]),
                "gap": needed.gap,
                "more_units": needed.more_units,
                "more_scenarios": needed.more_scenarios,
            },
        },
        "effects": _effects(board.effects),
        "standings": [_standing(board, standing) for standing in board.standings],
    }


def _name(standing: LeaderboardRow) -> dict[str, str]:
    return {"model": standing.model, "prompt": standing.prompt, "prompt_digest": standing.prompt_digest}


def _standing(board: Leaderboard, standing: LeaderboardRow) -> dict[str, Any]:
    place = standing.place
    return {
        **_name(standing),
        "settings": dict(standing.settings),
        "top": place.top if place else None,
        "p_top": place.p_top if place else None,
        "p_best": place.p_best if place else None,
        "composite": standing.composite,
        "scores": {
            name: {
                "mean": standing.means[name],
                "low": standing.intervals[name].low,
                "high": standing.intervals[name].high,
            }
            for name in board.scores
            if name in standing.means
        },
        "if_worst": standing.extremes.low,
        "if_best": standing.extremes.high,
        "scenarios": list(standing.scenarios),
        **{name: getattr(standing, name) for name in _COUNTS},
        "candidates": standing.candidates,
        "diversity": standing.diversity,
        "cost": asdict(standing.cost),
        "on_front": standing.on_front,
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
            for factor, levels in standing.slices.items()
        },
    }


_COUNTS = ("scored", "judged", "pending", "failed", "missing", "empty")


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
    return csv_text([_flat(board, standing) for standing in board.standings]).rstrip("\n")


def _flat(board: Leaderboard, standing: LeaderboardRow) -> dict[str, Any]:
    place = standing.place
    row: dict[str, Any] = {
        **_name(standing),
        **{f"setting.{key}": value for key, value in standing.settings.items()},
        "top": place.top if place else None,
        "p_top": place.p_top if place else None,
        "p_best": place.p_best if place else None,
    }
    for name in ["composite", *(name for name in board.scores if name != "composite")]:
        interval = standing.intervals.get(name)
        row[name] = standing.means.get(name)
        row[f"{name}.low"], row[f"{name}.high"] = interval or (None, None)
    row |= {"if_worst": standing.extremes.low, "if_best": standing.extremes.high}
    row |= {name: getattr(standing, name) for name in _COUNTS}
    row |= {"candidates": standing.candidates, "diversity": standing.diversity}
    row |= {f"cost.{name}": value for name, value in asdict(standing.cost).items()}
    return {**row, "on_front": standing.on_front, "provisional": board.provisional}


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
    says = [*verdict(board), *effect_sentences(board), *warnings(board)]
    lines = [f"**{markdown_text(headline(board))}**", "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for standing in board.standings:
        interval = standing.intervals.get("composite")
        place = standing.place
        cells = [
            mark(standing),
            markdown_text(standing.model),
            markdown_text(prompt_label(board, standing)),
            figure(standing.composite),
            range_text(*interval) if interval else "–",
            percent(place.p_best if place else None),
            *(figure(standing.means.get(name)) for name in criteria),
            *([range_text(*standing.extremes)] if board.gaps else []),
            *(str(getattr(standing, name)) for name in ("judged", "pending", "failed", "empty")),
            figure(standing.cost.seconds),
            figure(standing.cost.tokens_per_s, 1),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, *([""] if says else []), *(f"- {markdown_text(text)}" for text in says)])


def mark(standing: LeaderboardRow) -> str:
    """Whether a row may be the best: ● yes, nothing: no, ? can't be told."""
    if standing.composite is None:
        return "–"
    if standing.place is None or standing.place.top is None:
        return "?"
    return "●" if standing.place.top else ""


FORMATS: Mapping[str, Callable[[Leaderboard], str]] = {
    "json": as_json,
    "csv": as_csv,
    "markdown": as_markdown,
}
