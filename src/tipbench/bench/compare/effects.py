"""Main effects of models and prompts, and whether one prompt is the best on all models."""

from collections.abc import Mapping
from dataclasses import dataclass

from tipbench.bench.compare.rows import Rows


@dataclass(frozen=True)
class LevelEffect:
    """How far a model or a prompt lies above the overall mean; no interval where it can't be determined."""

    name: str
    size: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class FactorEffects:
    """The effects of all models or of all prompts, best first."""

    levels: tuple[LevelEffect, ...]
    p: float | None  # p-value of the differences; None: can't be determined
    unit: str  # what was treated as independent


@dataclass(frozen=True)
class GridEffects:
    """Effects over a full grid of models and prompts."""

    models: FactorEffects
    prompts: FactorEffects
    interaction_p: float | None  # p-value of prompts ranking differently on different models
    best_prompts: Mapping[str, tuple[str, ...]]  # model → the prompt with its highest mean, or those that share it
    scenarios: int
    left_out: tuple[str, ...]  # prompts that some model has no scores for


def grid_effects(rows: Rows) -> GridEffects | str:
    """Return the effects, or the reason why there are none."""
    by_name: dict[tuple[str, str], int] = {}
    for index, row in enumerate(rows.rows):
        if not row.scores:
            continue
        if row.name in by_name:
            return "rows of the same model and prompt were collected with different settings"
        by_name[row.name] = index
    models = sorted({model for model, _ in by_name})
    shared_prompts = [p for p in sorted({p for _, p in by_name}) if all((model, p) in by_name for model in models)]
    if len(by_name) < 2:
        return "fewer than two rows have scores"
    if not shared_prompts:
        return "no prompt has scores on every model"
    chosen = [rows.rows[by_name[model, prompt]] for model in models for prompt in shared_prompts]
    scenarios = [one for one in rows.scenarios if all(one in row.scores for row in chosen)]
    if not scenarios:
        return "no scenario was scored in every row"
    from tipbench.bench.compare.inference import infer_effects  # brings numpy

    return infer_effects(rows, chosen, scenarios, tuple(sorted({p for _, p in by_name} - set(shared_prompts))))


def prompt_sentence(effects: GridEffects) -> str:
    """Say in a sentence whether the best prompt is the best on all models."""
    best = effects.prompts.levels[0].name
    ahead = [model for model, prompts in effects.best_prompts.items() if best in prompts]
    shared = [model for model in ahead if len(effects.best_prompts[model]) > 1]
    behind = [model for model in effects.best_prompts if model not in ahead]
    total = len(effects.best_prompts)
    where = f"{len(ahead)} of {total} models"
    if not behind:
        where = "the only model" if total == 1 else f"all {total} models"
    sentence = f"{best} has the highest mean on {where}"
    sentence += f", not on {', '.join(behind)}" if behind else ""
    return f"{sentence}; on {', '.join(shared)} it shares it." if shared else f"{sentence}."


def evidence(p: float | None, units: str) -> str:
    """Describe a p-value in words."""
    if p is None:
        return "can't be told"
    from tipbench.statistics.effects import LEVEL  # brings numpy

    strength = "more than chance" if p <= LEVEL else "may be chance"
    return f"{strength} ({p_text(p)}{f', by {units}' if units else ''})"


def p_text(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
