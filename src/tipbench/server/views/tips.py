"""The texts of a leaderboard's best rows as candidates for the recommender, each with the run it came from."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Annotated

from pydantic import Field, TypeAdapter

from tipbench.bench.compare.leaderboard import Leaderboard
from tipbench.bench.compare.leaderboard_row import LeaderboardRow
from tipbench.bench.judge.settle import effective_verdicts
from tipbench.bench.records import StoredCell
from tipbench.bench.suites.rubric import Rubric
from tipbench.bench.tracking.batches import applied_batches, batch_runs
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.tracking.runs import CELL, KIND, stored_candidates
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import InvalidInput, NotFound
from tipbench.core.files import read_text
from tipbench.core.identity import data_digest
from tipbench.core.located_yaml import load_located
from tipbench.core.text import counted
from tipbench.core.untrusted import printable
from tipbench.recommender.records import Candidate, Name, Source

SCENARIO = "scenario"  # a category that every suite has
GENERAL = "general"  # category of a text that has no word of any
_ID_LENGTH = 32
_Words = Annotated[list[Annotated[str, Field(min_length=1, strict=True)]], Field(min_length=1)]
_CATEGORIES = TypeAdapter(Annotated[dict[Name, _Words], Field(min_length=1, max_length=1000)])
_MAX_CATEGORY_LENGTH = 128


@dataclass(frozen=True)
class Tip:
    candidate: Candidate
    text: str  # as the model wrote it: untrusted
    composite: float | None = None  # its own, else its cell's; None: no judge that counts has scored it


@dataclass(frozen=True)
class Tips:
    rows: tuple[LeaderboardRow, ...]  # that the texts come from
    tips: tuple[Tip, ...]
    failed: int  # cells without texts, because they failed
    empty: int
    overlong: int = 0  # texts that are left out because they are longer than the rubric allows
    low: int = 0  # texts that are left out because their composite is below `min_composite`
    min_composite: float = 0.0

    @property
    def unjudged(self) -> int:
        return sum(tip.composite is None for tip in self.tips)

    @property
    def left_out(self) -> str:
        """What is left out, and why; empty if nothing is."""
        reasons = (
            (self.low, "tip", f"with a composite below {self.min_composite:g}"),
            (self.overlong, "tip", "longer than the rubric allows"),
            (self.failed, "cell", "that failed"),
            (self.empty, "cell", "without a usable text"),
        )
        return ", ".join(f"{counted(count, what)} {why}" for count, what, why in reasons if count)


def best_row_indices(board: Leaderboard, top: int, model: str | None = None, prompt: str | None = None) -> list[int]:
    """Return the indices of the best `top` rows, optionally of one model or one prompt.

    Raises InvalidInput if no row matches, or if there are more than `top` and none is scored.
    """
    matching = [
        index for index, row in enumerate(board.rows) if model in (None, row.model) and prompt in (None, row.prompt)
    ]
    if not matching:
        wanted = " × ".join(name for name in (model, prompt) if name is not None)
        known = ", ".join(dict.fromkeys(f"{one.model} × {one.prompt}" for one in board.rows))
        raise InvalidInput(f"no row of '{board.experiment}' is {wanted}; there are {known}")
    if len(matching) > top and all(board.rows[index].composite is None for index in matching):
        raise InvalidInput(
            f"nothing of '{board.experiment}' that could be taken is scored yet, so there is no best row; "
            f"judge it first, or name one row by --model and --prompt"
        )
    return matching[:top]


def tips_of(
    store: RunStore, experiment: Experiment, board: Leaderboard, indices: Sequence[int], category: str | None
) -> Tips:
    """Return all texts of these rows.

    `category` names a factor of the suite, or the scenario; None is the factor that the suite clusters its scenarios
    by, else the scenario.
    """
    _check_category(board, category)
    cells = [cell for index in indices for cell in board.grid.rows[index].cells]
    texts = _texts(store, experiment, [cell for cell in cells if cell.failure is None and not cell.is_empty])
    composites = _composites(store, experiment, cells, board.rubric_digest)
    return Tips(
        rows=tuple(board.rows[index] for index in indices),
        tips=tuple(
            tip
            for cell in cells
            if cell.run_id in texts
            for tip in _tips(cell, texts[cell.run_id], _category(cell, category), composites)
        ),
        failed=sum(cell.failure is not None for cell in cells),
        empty=sum(cell.is_empty for cell in cells),
    )


def _texts(store: RunStore, experiment: Experiment, cells: Sequence[StoredCell]) -> dict[str, tuple[str, ...]]:
    wanted = {cell.run_id for cell in cells}
    runs = (run for run in store.iter_runs(experiment, {KIND: CELL}) if run.run_id in wanted)
    texts = {run.run_id: stored_candidates(store, run).texts for run in runs}
    if len(texts) < len(wanted):
        raise NotFound(
            f"run {min(wanted - texts.keys())} is gone from '{experiment.name}'; "
            f"read it anew: tipbench compare --experiment {experiment.name} --refresh"
        )
    return texts


def _composites(
    store: RunStore, experiment: Experiment, cells: Sequence[StoredCell], rubric_digest: str
) -> dict[tuple[str, int], float]:
    """Return the composite of each text by run and position, as a mean over the judges that count.

    Position -1 holds that of the whole cell, for texts that were not in a judge's sample.
    """
    applied = applied_batches(store, batch_runs(store, experiment), rubric_digest)
    found: dict[tuple[str, int], list[float]] = {}
    for own in effective_verdicts([batch for batch in applied if batch.counted]).values():
        for item, verdict in own.items():
            found.setdefault(item, []).append(verdict.composite)
    of_cells = {(cell.run_id, -1): cell.metrics["composite"] for cell in cells if cell.is_counted(rubric_digest)}
    return of_cells | {item: fmean(values) for item, values in found.items()}


def _tips(
    cell: StoredCell, texts: Sequence[str], category: str, composites: Mapping[tuple[str, int], float]
) -> Iterator[Tip]:
    source = Source(run_id=cell.run_id, cell=cell.key)
    of_cell = composites.get((cell.run_id, -1))
    for index, text in enumerate(texts):
        id = data_digest([cell.run_id, index, text])[:_ID_LENGTH]
        candidate = Candidate(id=id, category=category, len_chars=len(text), source=source)
        yield Tip(candidate, text, composites.get((cell.run_id, index), of_cell))


def good_tips(tips: Tips, rubric: Rubric, min_composite: float | None = None) -> Tips:
    """Leave out texts that are longer than the rubric allows, or whose composite is below `min_composite`.

    The default is the middle of the composite's scale. Texts that nobody has judged stay. Candidates of the others get
    their composite, scaled to 0..1. Raises InvalidInput if nothing is left, or if `min_composite` is not on the scale.
    """
    low, high = rubric.lowest()["composite"], rubric.highest_composite()
    least = (low + high) / 2 if min_composite is None else min_composite
    if not low <= least <= high:  # rejects nan, too
        raise InvalidInput(f"--min-composite {least:g} is not on the composite's scale, which is {low:g} to {high:g}")
    fitting = [tip for tip in tips.tips if not _is_overlong(tip.text, rubric)]
    kept = tuple(_with_judged(tip, low, high) for tip in fitting if tip.composite is None or tip.composite >= least)
    overlong, below = len(tips.tips) - len(fitting), len(fitting) - len(kept)
    found = replace(tips, tips=kept, overlong=overlong, low=below, min_composite=least)
    if not kept:
        names = ", ".join(f"{row.model} × {row.prompt}" for row in tips.rows)
        instead = "lower --min-composite, or take other rows" if found.low else "take other rows"
        raise InvalidInput(f"no tip of {names} is good enough ({found.left_out}); {instead} (--top, --model, --prompt)")
    return found


def _with_judged(tip: Tip, low: float, high: float) -> Tip:
    if tip.composite is None:
        return tip
    judged = min(1.0, max(0.0, (tip.composite - low) / (high - low)))
    return replace(tip, candidate=tip.candidate.model_copy(update={"judged": judged}))


def _is_overlong(text: str, rubric: Rubric) -> bool:
    return any(flag.holds(text, True) for flag in rubric.flags.values() if flag.limit is not None and flag.worst)


def _category(cell: StoredCell, category: str | None) -> str:
    factor = category or cell.cluster
    level = cell.factors.get(factor, cell.scenario) if factor else cell.scenario
    return printable(level, _MAX_CATEGORY_LENGTH)


# Categories that apps and the recommender know, told from a text's own words.


class CategoryWords:
    """Categories by name, each with the words that speak for it."""

    def __init__(self, words: Mapping[str, Sequence[str]]) -> None:
        self._patterns = {
            name: re.compile(rf"\b(?:{'|'.join(re.escape(word.casefold()) for word in spoken)})")
            for name, spoken in words.items()
        }

    def category(self, text: str) -> str:
        """Return the category that most words of a text speak for, the first of several; GENERAL if none does."""
        counts = {name: len(pattern.findall(text.casefold())) for name, pattern in self._patterns.items()}
        best = max(counts, key=lambda name: counts[name])
        return best if counts[best] else GENERAL


def load_categories(path: Path) -> CategoryWords:
    """Load categories and their words from a YAML file; raise InvalidInput if it can't be read or is malformed."""
    try:
        located = load_located(read_text(path))
        if located.problems:
            raise ValueError("; ".join(problem for _, problem in located.problems))
        return CategoryWords(_CATEGORIES.validate_python(located.data))
    except OSError as error:
        raise InvalidInput(f"the categories {path} can't be read: {error.strerror or error}") from error
    except ValueError as error:
        raise InvalidInput(
            f"{path} does not hold categories ({printable(str(error), 200)}); write 'name: [word, word]' for each"
        ) from error


def with_categories(tips: Tips, words: CategoryWords) -> Tips:
    """Return the tips with the categories that their words speak for."""
    return replace(
        tips,
        tips=tuple(
            replace(tip, candidate=tip.candidate.model_copy(update={"category": words.category(tip.text)}))
            for tip in tips.tips
        ),
    )


def _check_category(board: Leaderboard, category: str | None) -> None:
    known = sorted(board.grid.levels)
    if category not in (None, SCENARIO, *known):
        raise InvalidInput(f"--category '{category}' is none of {', '.join([*known, SCENARIO])}")
