"""What the models do, what the prompts do, and whether a prompt is better on all models."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tipbench.bench.compare.comparison import score_table
from tipbench.bench.compare.rows import Rows
from tipbench.statistics.effects import LEVEL, Effects, interaction, main_effects
from tipbench.statistics.units import NOTHING, Floats, paired


@dataclass(frozen=True)
class LevelEffect:
    """How far a model or a prompt lies above the mean of all; the interval is None where nothing can be told."""

    name: str
    size: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class FactorEffects:
    """Of models or of prompts, the best first."""

    levels: tuple[LevelEffect, ...]
    p: float | None  # how easily chance brings about such differences; None: that can't be told
    unit: str  # what was taken for independent


@dataclass(frozen=True)
class GridEffects:
    """Effects over a full grid of models and prompts."""

    models: FactorEffects
    prompts: FactorEffects
    interaction_p: float | None  # how easily chance explains that prompts rank differently on different models
    best_prompts: Mapping[str, tuple[str, ...]]  # model → the prompt with its highest mean, or those that share it
    scenarios: int
    left_out: tuple[str, ...]  # prompts that not every model has


def grid_effects(rows: Rows) -> GridEffects | str:
    """The effects, or why there are none."""
    by_name: dict[tuple[str, str], int] = {}
    for index, row in enumerate(rows.rows):
        if not row.scores:
            continue
        if row.name in by_name:
            return "rows of the same model and prompt were asked in different ways"
        by_name[row.name] = index
    models = sorted({model for model, _ in by_name})
    everywhere = [p for p in sorted({p for _, p in by_name}) if all((model, p) in by_name for model in models)]
    if len(by_name) < 2:
        return "fewer than two rows have scores"
    if not everywhere:
        return "no prompt has scores on every model"
    chosen = [rows.rows[by_name[model, prompt]] for model in models for prompt in everywhere]
    scenarios = [one for one in rows.scenarios if all(one in row.scores for row in chosen)]
    if not scenarios:
        return "no scenario was scored in every row"
    table = score_table(chosen, scenarios).reshape(len(models), len(everywhere), len(scenarios))
    units = rows.units_of(scenarios)
    means = table.mean(axis=2)
    return GridEffects(
        models=_factor(models, table.mean(axis=1), units, rows.unit_name),
        prompts=_factor(everywhere, table.mean(axis=0), units, rows.unit_name),
        interaction_p=_interaction(table, units),
        best_prompts={
            model: tuple(
                p for p, mean in zip(everywhere, means[place], strict=True) if mean > means[place].max() - NOTHING
            )
            for place, model in enumerate(models)
        },
        scenarios=len(scenarios),
        left_out=tuple(sorted({p for _, p in by_name} - set(everywhere))),
    )


def _factor(names: Sequence[str], table: Floats, units: Sequence[str], unit_name: str) -> FactorEffects:
    effects, unit = _told(table, units, unit_name, len(names), lambda data, of: main_effects(paired(data, of)))
    sizes = table.mean(axis=1) - table.mean()
    levels = [
        LevelEffect(
            name,
            float(sizes[place]),
            float(effects.lows[place]) if effects else None,
            float(effects.highs[place]) if effects else None,
        )
        for place, name in enumerate(names)
    ]
    ranked = sorted(levels, key=lambda level: (-level.size, level.name))
    return FactorEffects(tuple(ranked), effects.p if effects else None, unit)


def _interaction(table: Floats, units: Sequence[str]) -> float | None:
    models, prompts, _ = table.shape
    if models < 2 or prompts < 2:
        return None

    def test(data: Floats, of: Sequence[str] | None) -> Effects:
        together = paired(data.reshape(models * prompts, -1), of)
        return interaction(together.scores.reshape(models, prompts, -1), together.weights)

    effects, _ = _told(table, units, "", max(models, prompts), test)
    return effects.p if effects else None


def _told(
    table: Floats,
    units: Sequence[str],
    unit_name: str,
    levels: int,
    test: Callable[[Floats, Sequence[str] | None], Effects],
) -> tuple[Effects | None, str]:
    """On units where they suffice, else on scenarios, else not at all."""
    if _enough(levels, len(set(units))):
        return test(table, units), unit_name
    if _enough(levels, len(units)):
        return test(table, None), "scenario"
    return None, "scenario"


def _enough(levels: int, units: int) -> bool:
    """Whether any outcome could be more than chance: the clearest has the same level ahead in every unit."""
    return levels > 1 and float(levels) ** (1 - units) <= LEVEL


def prompt_sentence(effects: GridEffects) -> str:
    """Is the best prompt better on all models? In a sentence."""
    best = effects.prompts.levels[0].name
    ahead = [model for model, prompts in effects.best_prompts.items() if best in prompts]
    shared = [model for model in ahead if len(effects.best_prompts[model]) > 1]
    behind = [model for model in effects.best_prompts if model not in ahead]
    total = len(effects.best_prompts)
    where = f"{len(ahead)} of {total} models"
    if not behind:
        where = "the only model" if total == 1 else f"all {total} models"
    told = f"{best} has the highest mean on {where}"
    told += f", not on {', '.join(behind)}" if behind else ""
    return f"{told}; on {', '.join(shared)} it shares it." if shared else f"{told}."


def evidence(p: float | None, units: str) -> str:
    """A p-value in words."""
    if p is None:
        return "can't be told"
    strength = "more than chance" if p <= LEVEL else "may be chance"
    return f"{strength} ({p_text(p)}{f', by {units}' if units else ''})"


def p_text(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
