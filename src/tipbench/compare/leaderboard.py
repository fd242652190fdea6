"""The leaderboard per (model, prompt): means over scenarios, and what is missing from them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from tipbench.records import Standing, StoredCell
from tipbench.suites.rubric import Rubric
from tipbench.tracking.runs import BY_RULE


@dataclass(frozen=True)
class Leaderboard:
    """The standings, best composite first, and by whom and by which rubric they were scored."""

    experiment: str
    rubric: str
    rubric_digest: str
    scores: tuple[str, ...]  # names of the means, the composite last
    flags: tuple[str, ...]  # those among them that are flags
    judges: tuple[str, ...]
    kappas: Mapping[str, Mapping[str, float | None]]  # of each judge with the anchors, by criterion; empty: not told
    provisional: bool  # no counted judge has scored anything yet; the figures are a rule's
    other_rubrics: int  # cells scored by another rubric, which count as pending here
    uneven: bool  # rows were scored on different scenarios, so their means compare different things
    standings: tuple[Standing, ...]

    @property
    def judged(self) -> int:
        return sum(standing.judged for standing in self.standings)

    @property
    def pending(self) -> int:
        return sum(standing.pending for standing in self.standings)

    @property
    def failed(self) -> int:
        return sum(standing.failed for standing in self.standings)


def leaderboard(
    experiment: str, cells: Sequence[StoredCell], rubric: Rubric, kappas: Mapping[str, Mapping[str, float | None]]
) -> Leaderboard:
    """Counted scores if there are any, else provisional ones; the two are never mixed."""
    counted = any(cell.is_counted(rubric.digest) and cell.judged_by != BY_RULE for cell in cells)
    scores_of = _counted_scores(rubric) if counted else _provisional_scores(rubric)
    groups: dict[tuple[Any, ...], list[StoredCell]] = {}
    for cell in cells:
        # Cells that were asked in another way are another row, never repeats of this one.
        asked = (cell.model, cell.prompt, cell.prompt_digest, *sorted(cell.settings.items()))
        groups.setdefault(asked, []).append(cell)
    standings = [_standing(group, rubric, scores_of) for group in groups.values()]
    judges = {
        note.judge
        for cell in cells
        for note in cell.judges
        if note.rubric_digest == rubric.digest and (note.provisional != counted)
        if note.counted or note.provisional
    }
    return Leaderboard(
        experiment=experiment,
        rubric=rubric.name,
        rubric_digest=rubric.digest,
        scores=rubric.score_names,
        flags=tuple(rubric.flags),
        judges=tuple(sorted(judges)),
        kappas={judge: kappas.get(judge, {}) for judge in sorted(judges)},
        provisional=not counted,
        other_rubrics=sum(cell.judged_rubric not in (None, rubric.digest) and not cell.is_empty for cell in cells),
        uneven=len({row.scenarios for row in standings if row.scenarios}) > 1,
        standings=tuple(sorted(standings, key=_best_first)),
    )


ScoresOf = Callable[[StoredCell], Mapping[str, float] | None]


def _counted_scores(rubric: Rubric) -> ScoresOf:
    def scores(cell: StoredCell) -> Mapping[str, float] | None:
        if cell.is_empty:
            return rubric.lowest()
        if not cell.is_counted(rubric.digest):
            return None
        return {name: cell.metrics[name] for name in rubric.score_names}

    return scores


def _provisional_scores(rubric: Rubric) -> ScoresOf:
    def scores(cell: StoredCell) -> Mapping[str, float] | None:
        if cell.is_empty:
            return rubric.lowest()
        for note in cell.judges:
            if note.provisional and note.rubric_digest == rubric.digest:
                return {name: cell.metrics[f"judge/{note.judge}/{name}"] for name in rubric.score_names}
        return None

    return scores


def _standing(cells: Sequence[StoredCell], rubric: Rubric, scores_of: ScoresOf) -> Standing:
    answered = [cell for cell in cells if cell.failure is None]
    judged = [cell for cell in answered if cell.is_empty or cell.is_counted(rubric.digest)]
    by_scenario: dict[str, list[Mapping[str, float]]] = {}
    for cell in answered:
        scores = scores_of(cell)
        if scores is not None:
            by_scenario.setdefault(cell.scenario, []).append(scores)
    # Repeats are averaged within their scenario first: the scenario is the unit.
    means = {
        name: fmean(fmean(scores[name] for scores in repeats) for repeats in by_scenario.values())
        for name in rubric.score_names
        if by_scenario
    }
    return Standing(
        model=cells[0].model,
        prompt=cells[0].prompt,
        prompt_digest=cells[0].prompt_digest,
        settings=cells[0].settings,
        means=means,
        scenarios=tuple(sorted(by_scenario)),
        scored=sum(len(repeats) for repeats in by_scenario.values()),
        judged=len(judged),
        pending=len(answered) - len(judged),
        failed=len(cells) - len(answered),
        empty=sum(cell.is_empty for cell in answered),
        candidates=_mean(float(cell.candidates) for cell in answered),
        wall_s=_mean(cell.metrics.get("gen/wall_s") for cell in answered),
        generate_s=_mean(cell.metrics.get("gen/generate_s") for cell in answered),
        output_tokens=_mean(cell.metrics.get("gen/output_tokens") for cell in answered),
        diversity=_mean(cell.metrics.get("answer/diversity") for cell in answered),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _best_first(standing: Standing) -> tuple[Any, ...]:
    best = -standing.composite if standing.composite is not None else float("inf")
    return (best, standing.model, standing.prompt, standing.prompt_digest, sorted(standing.settings.items()))
