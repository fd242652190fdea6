"""The best and the worst candidates of each row, with what judges said about them: figures that can be read aloud."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from tipbench.bench.compare.rows import RowKey, key_of
from tipbench.bench.records import StoredCell, Verdict

_EACH = 2  # best ones, and worst ones
Item = tuple[str, int]  # run, candidate


@dataclass(frozen=True)
class Example:
    """A candidate with its scores, means over the judges that gave some."""

    scenario: str
    text: str  # as the model wrote it: untrusted
    composite: float
    scores: Mapping[str, float]  # criteria, and flags as 0 or 1
    notes: tuple[str, ...]  # what judges wrote about it: untrusted too


@dataclass(frozen=True)
class Examples:
    """Of one row; a candidate is in one of the two at most."""

    best: tuple[Example, ...]
    worst: tuple[Example, ...]


def pick_examples(
    cells: Sequence[StoredCell],
    verdicts: Sequence[Mapping[Item, Verdict]],
    text_of: Callable[[str, int], str],
    each: int = _EACH,
) -> dict[RowKey, Examples]:
    """For each row; `verdicts` holds one judge's each. Of equal ones the first by the scenario's name are taken."""
    given: dict[Item, list[Verdict]] = {}
    for one in verdicts:
        for item, verdict in one.items():
            given.setdefault(item, []).append(verdict)
    by_run = {cell.run_id: cell for cell in cells}
    rows: dict[RowKey, list[tuple[float, str, int, Item]]] = {}
    for item, found in given.items():
        cell = by_run.get(item[0])
        if cell is not None:
            composite = fmean(verdict.composite for verdict in found)
            rows.setdefault(key_of(cell), []).append((composite, cell.scenario, cell.repeat, item))

    def example(composite: float, scenario: str, item: Item) -> Example:
        found = given[item]
        scores = {name: fmean(float(v.scores[name]) for v in found) for name in found[0].scores}
        flags = {name: fmean(float(v.flags[name]) for v in found) for name in found[0].flags}
        notes = tuple(verdict.note for verdict in found if verdict.note)
        return Example(scenario, text_of(*item), composite, {**scores, **flags}, notes)

    picked = {}
    for key, candidates in rows.items():
        best = sorted(candidates, key=lambda one: (-one[0], *one[1:]))[:each]
        worst = [one for one in sorted(candidates) if one not in best][:each]
        picked[key] = Examples(
            tuple(example(composite, scenario, item) for composite, scenario, _, item in best),
            tuple(example(composite, scenario, item) for composite, scenario, _, item in worst),
        )
    return picked
