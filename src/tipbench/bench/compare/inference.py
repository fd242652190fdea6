"""What rows' scores show beyond chance, computed with arrays: ranks, what it would take to separate rows, and effects.

Import it where there are scores to compare: it brings numpy.
"""

from collections.abc import Sequence
from math import ceil, inf, sqrt

import numpy as np

from tipbench.bench.compare.comparison import Comparison, Needed, Rank, too_few
from tipbench.bench.compare.effects import FactorEffects, GridEffects, LevelEffect
from tipbench.bench.compare.rows import Row, Rows, Units, choose_units
from tipbench.statistics.effects import LEVEL as EFFECTS_LEVEL
from tipbench.statistics.effects import interaction, main_effects
from tipbench.statistics.interval import Interval
from tipbench.statistics.planning import LEVEL, more_units, separable
from tipbench.statistics.top_group import (
    TopGroup,
    critical_at_many_units,
    draw_means,
    expected_loss,
    probability_best,
    top_group,
)
from tipbench.statistics.units import NEGLIGIBLE, Floats, Paired, means_and_errors, paired
from tipbench.statistics.winner import LEVEL as WINNER_LEVEL
from tipbench.statistics.winner import LeaderTest, leader_against_others, units_to_win

_MIN_UNITS = 4  # to estimate how many more are needed: fewer say next to nothing about the variance


def infer_comparison(rows: Rows, compared: Sequence[int], scenarios: Sequence[str], notes: Sequence[str]) -> Comparison:
    """Compare two or more rows, given by their indices, on the scenarios that all of them were scored on."""
    table = score_table([rows.rows[index] for index in compared], scenarios)
    of_scenarios = rows.units_of(scenarios)
    units = choose_units(of_scenarios, rows.unit_name, lambda count: separable(len(compared), count))
    chosen = paired(table, units.of_scenarios)
    if not units.suffice:
        notes = [*notes, too_few(chosen.rows, units.count, units.name)]
    group = top_group(chosen) if units.suffice else None
    by_unit = paired(table, of_scenarios)
    test = leader_against_others(by_unit)
    winner = test.winner() if group else None
    means = draw_means(by_unit)
    ranks: list[Rank | None] = [None] * len(rows.rows)
    for index, rank in zip(compared, _ranks(group, test, probability_best(means)), strict=True):
        ranks[index] = rank
    needed = _needed(chosen, units, compared, group, ranks)
    return Comparison(
        ranks=tuple(ranks),
        winner=None if winner is None else compared[winner],
        winner_p=None if winner is None else test.weakest_p,
        scenarios=tuple(scenarios),
        unit=units.name,
        units=units.count,
        level=LEVEL,
        separable=units.suffice,
        clusters=units.clusters,
        notes=tuple(notes),
        needed=needed,
        expected_loss=expected_loss(means, int(by_unit.means.argmax())),
        independent_units=by_unit.units,
        at_the_end_of_the_scale=is_at_an_end(table, rows.scales["composite"]),
    )


def _ranks(group: TopGroup | None, test: LeaderTest, likely: Floats) -> list[Rank]:
    """Rank the compared rows: by the test of the leader if it proves a winner, else by the top group."""
    if group is None:
        return [Rank(None, None, None)] * len(likely)
    p = group.p if test.winner() is None else test.p
    return [Rank(bool(one > LEVEL), float(one), float(best)) for one, best in zip(p, likely, strict=True)]


def _needed(
    chosen: Paired, units: Units, compared: Sequence[int], group: TopGroup | None, ranks: Sequence[Rank | None]
) -> Needed | None:
    """Return what the cheaper of the two tests would take: that of all rows together, or that of the leader."""
    means = chosen.means
    first, second = sorted(range(len(compared)), key=lambda order: (-means[order], order))[:2]
    gap = float(means[first] - means[second])
    behind = ranks[compared[second]]
    if behind and behind.top is False:
        return Needed(compared[first], compared[second], gap, 0, 0)
    if gap <= NEGLIGIBLE:
        return Needed(compared[first], compared[second], gap, None, None)
    if group is None or chosen.units < _MIN_UNITS:
        return None
    difference = chosen.scores[first] - chosen.scores[second]
    _, error = means_and_errors(difference[np.newaxis], chosen.weights)
    deviation = float(error[0]) * sqrt(chosen.units)
    more = more_units(gap, deviation, group.critical, chosen.units, critical_at_many_units(chosen.rows, LEVEL))
    if units.of_scenarios is not None:
        ahead = np.delete(chosen.scores[first] - chosen.scores, first, axis=0) * (chosen.weights * chosen.units)
        more = min(more, max(1, units_to_win(ahead, WINNER_LEVEL) - chosen.units))
    if more == inf:
        return Needed(compared[first], compared[second], gap, None, None)
    per_unit = len(units.of_scenarios) / units.count if units.of_scenarios is not None else 1
    return Needed(compared[first], compared[second], gap, int(more), ceil(more * per_unit))


def infer_effects(
    rows: Rows, chosen: Sequence[Row], scenarios: Sequence[str], left_out: tuple[str, ...]
) -> GridEffects:
    """Return the effects over the chosen rows: for every model in turn, one of every prompt."""
    models, prompts = (list(dict.fromkeys(names)) for names in zip(*(row.name for row in chosen), strict=True))
    table = score_table(chosen, scenarios).reshape(len(models), len(prompts), len(scenarios))
    units = rows.units_of(scenarios)
    means = table.mean(axis=2)
    return GridEffects(
        models=_factor(models, table.mean(axis=1), units, rows.unit_name),
        prompts=_factor(prompts, table.mean(axis=0), units, rows.unit_name),
        interaction_p=_interaction(table, units),
        best_prompts={
            model: tuple(
                prompt
                for prompt, mean in zip(prompts, means[index], strict=True)
                if mean > means[index].max() - NEGLIGIBLE
            )
            for index, model in enumerate(models)
        },
        scenarios=len(scenarios),
        left_out=left_out,
    )


def _factor(names: Sequence[str], table: Floats, units: Sequence[str], unit_name: str) -> FactorEffects:
    chosen = choose_units(units, unit_name, lambda count: _suffice(len(names), count))
    effects = main_effects(paired(table, chosen.of_scenarios)) if chosen.suffice else None
    sizes = table.mean(axis=1) - table.mean()
    levels = [
        LevelEffect(
            name,
            float(sizes[index]),
            float(effects.lows[index]) if effects else None,
            float(effects.highs[index]) if effects else None,
        )
        for index, name in enumerate(names)
    ]
    ranked = sorted(levels, key=lambda level: (-level.size, level.name))
    return FactorEffects(tuple(ranked), effects.p if effects else None, chosen.name)


def _interaction(table: Floats, units: Sequence[str]) -> float | None:
    models, prompts, _ = table.shape
    if models < 2 or prompts < 2:
        return None
    chosen = choose_units(units, "", lambda count: _suffice(max(models, prompts), count))
    if not chosen.suffice:
        return None
    together = paired(table.reshape(models * prompts, -1), chosen.of_scenarios)
    return interaction(together.scores.reshape(models, prompts, -1), together.weights).p


def _suffice(levels: int, units: int) -> bool:
    """Return whether any outcome could be significant: in the clearest one, the same level leads in every unit."""
    return levels > 1 and float(levels) ** (1 - units) <= EFFECTS_LEVEL


def is_at_an_end(table: Floats, scale: Interval) -> bool:
    """Whether more than half of the scores are within a twentieth of one end of the scale; NaN is no score."""
    known = table[~np.isnan(table)]
    near = (scale.high - scale.low) / 20
    ends = (known <= scale.low + near).sum(), (known >= scale.high - near).sum()
    return bool(max(ends) > known.size / 2)


def score_table(rows: Sequence[Row], scenarios: Sequence[str], name: str = "composite") -> Floats:
    """Return the scores as a matrix of rows by scenarios."""
    return np.array([[row.scores[scenario][name] for scenario in scenarios] for row in rows], dtype=np.float64)
