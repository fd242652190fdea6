"""Compare two experiments cell by cell: which rows changed by more than chance."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from statistics import fmean
from typing import Any, Literal

from tipbench.bench.compare.inference import score_table
from tipbench.bench.compare.messages import figure
from tipbench.bench.compare.rows import Row, Rows, choose_units
from tipbench.bench.records import BY_RULE
from tipbench.core.errors import InvalidInput
from tipbench.core.text import plural
from tipbench.core.untrusted import csv_text, json_text, markdown_text
from tipbench.statistics.paired import LEVEL, changes, detectable, units_to_detect
from tipbench.statistics.units import paired

Name = tuple[str, str, tuple[tuple[str, str], ...]]
Pair = tuple[Row, Row]  # now, before
MARKS = {"better": "▲", "worse": "▼", "may be chance": "", "can't be told": "?"}


@dataclass(frozen=True)
class Change:
    """One (model, prompt) before and now, on the scenarios that were scored in both experiments."""

    model: str
    prompt: str
    before: float
    now: float
    low: float | None  # interval of the change, simultaneous over all rows; None: can't be determined
    high: float | None
    p: float | None  # p-value of the change, adjusted for all rows; None: can't be determined
    scenarios: int  # number of scenarios scored in both experiments
    prompt_changed: bool  # same version, different text
    model_changed: bool  # same name, different weights

    @property
    def change(self) -> float:
        return self.now - self.before

    @property
    def verdict(self) -> Literal["better", "worse", "may be chance", "can't be told"]:
        if self.p is None:
            return "can't be told"
        if self.p > LEVEL:
            return "may be chance"
        return "better" if self.change > 0 else "worse"


@dataclass(frozen=True)
class ExperimentComparison:
    """What changed from experiment `other` to `experiment`."""

    experiment: str
    other: str
    scenarios: tuple[str, ...]
    unit: str
    units: int
    changes: tuple[Change, ...]
    notes: tuple[str, ...]
    provisional: bool  # both experiments are scored by rules only


def compare_against(experiment: str, now: Rows, other: str, before: Rows) -> ExperimentComparison:
    """Compare the rows of two experiments; return their changes, the largest gain first.

    Rows are matched by model, prompt version and settings; the prompt's text and the model's weights may differ.
    Raises InvalidInput where the two can't be compared.
    """
    for name, rows in ((experiment, now), (other, before)):
        if not any(row.scores for row in rows.rows):
            raise InvalidInput(f"'{name}' has no scores yet, so there is nothing to compare; judge it first")
    if now.provisional != before.provisional:
        provisional = experiment if now.provisional else other
        raise InvalidInput(
            f"'{experiment}' and '{other}' can't be compared: the scores of '{provisional}' are provisional, the "
            f"other's are not; judge it first"
        )
    if experiment == other:
        raise InvalidInput(f"--against names '{other}' itself; name another experiment")
    ours, theirs = _by_name(now, experiment), _by_name(before, other)
    pairs = [(mine, theirs[name]) for name, mine in ours.items() if name in theirs]
    notes = _unmatched(experiment, ours, theirs) + _unmatched(other, theirs, ours)
    notes += _unscored(pairs) + _judges(experiment, now, other, before)
    units = {**before.units, **now.units}
    by_scenarios = _by_scenarios(pairs, list(units))
    if not by_scenarios:
        raise InvalidInput(
            f"'{experiment}' and '{other}' have no (model, prompt) that was scored on the same scenario in both"
        )
    listed: list[Change] = []
    by_unit = True
    for scenarios, members in by_scenarios.items():
        found, own_units = _changes(members, scenarios, [units[name] for name in scenarios], len(by_scenarios))
        by_unit &= own_units
        listed += found
    used = [name for name in units if any(name in scenarios for scenarios in by_scenarios)]
    unit = now.unit_name if by_unit else "scenario"
    notes += _caveats(listed, now.unit_name, unit, len({units[name] for name in used}), len(used))
    ranked = sorted(listed, key=lambda one: (-one.change, one.model, one.prompt))
    count = len({units[name] for name in used}) if by_unit else len(used)
    return ExperimentComparison(
        experiment, other, tuple(used), unit, count, tuple(ranked), tuple(notes), now.provisional
    )


def _by_scenarios(pairs: Sequence[Pair], scenarios: Sequence[str]) -> dict[tuple[str, ...], list[Pair]]:
    """Group pairs of rows by the scenarios that were scored in both; the rows of a group are tested together."""
    found: dict[tuple[str, ...], list[Pair]] = {}
    for mine, its in pairs:
        shared = tuple(name for name in scenarios if name in mine.scores and name in its.scores)
        if shared:
            found.setdefault(shared, []).append((mine, its))
    return found


def _changes(
    members: Sequence[Pair], scenarios: Sequence[str], units: Sequence[str], groups: int
) -> tuple[list[Change], bool]:
    """Return the changes of rows that are tested together, and whether they were tested by unit.

    Falls back to scenarios where there are too few units to detect a change. The level is divided among the groups of
    rows that are tested separately.
    """
    mine, its = ([pair[side] for pair in members] for side in (0, 1))
    table = score_table(mine, scenarios) - score_table(its, scenarios)
    chosen = choose_units(units, "", detectable)
    found = changes(paired(table, chosen.of_scenarios), LEVEL / groups) if chosen.suffice else None
    listed = [
        Change(
            model=now.name[0],
            prompt=now.name[1],
            before=fmean(before.scores[one]["composite"] for one in scenarios),
            now=fmean(now.scores[one]["composite"] for one in scenarios),
            low=_finite(found.lows[order]) if found else None,
            high=_finite(found.highs[order]) if found else None,
            p=min(1.0, float(found.p[order]) * groups) if found else None,
            scenarios=len(scenarios),
            prompt_changed=now.cells[0].prompt_digest != before.cells[0].prompt_digest,
            model_changed=now.cells[0].settings.get("model_digest") != before.cells[0].settings.get("model_digest"),
        )
        for order, (now, before) in enumerate(members)
    ]
    return listed, chosen.of_scenarios is not None


def _finite(end: float) -> float | None:
    return float(end) if isfinite(end) else None


def _caveats(listed: Sequence[Change], cluster: str, unit: str, clusters: int, scenarios: int) -> list[str]:
    """Return what a reader must know about the verdicts."""
    decided = [change for change in listed if change.p is not None]
    notes = []
    if len(decided) < len(listed):
        notes.append(f"It takes {units_to_detect()} scenarios to tell a change from chance, whatever the scores are.")
    if decided and unit != cluster:
        notes.append(
            f"The verdicts hold for these {clusters} {plural(cluster, clusters)}; to tell whether they hold for "
            f"others takes {units_to_detect()}."
        )
    if len({change.scenarios for change in listed}) > 1:
        notes.append(f"Each row is compared on the scenarios that it has scores on in both, of {scenarios}.")
    return notes


def _by_name(rows: Rows, experiment: str) -> dict[Name, Row]:
    found: dict[Name, Row] = {}
    for row in rows.rows:
        settings = {key: value for key, value in row.cells[0].settings.items() if key != "model_digest"}
        name = (*row.name, tuple(sorted(settings.items())))
        if name in found and row.scores and found[name].scores:
            raise InvalidInput(
                f"'{experiment}' holds {row.name[0]} × {row.name[1]} with several prompt texts or model weights, and "
                "it is not clear which one to compare; collect into a separate experiment"
            )
        if name not in found or row.scores:
            found[name] = row
    return found


def _unscored(pairs: Sequence[Pair]) -> list[str]:
    uncompared = sorted(" × ".join(mine.name) for mine, its in pairs if not mine.scores.keys() & its.scores.keys())
    return [f"Not compared, because no scenario has scores in both: {', '.join(uncompared)}."] if uncompared else []


def _judges(experiment: str, now: Rows, other: str, before: Rows) -> list[str]:
    """Return a note where the judges differ: a change may then come from a milder or stricter judge."""
    ours, theirs = (
        sorted({cell.judged_by for row in rows.rows for cell in row.cells if cell.judged_by not in (None, BY_RULE)})
        for rows in (now, before)
    )
    if ours == theirs:
        return []
    return [
        f"Other judges, who may be milder or stricter: {_names(ours)} in '{experiment}', {_names(theirs)} in '{other}'."
    ]


def _names(judges: Sequence[str | None]) -> str:
    return "; ".join(name or "" for name in judges)


def _unmatched(experiment: str, own: Mapping[Name, Row], others: Mapping[Name, Row]) -> list[str]:
    unmatched = sorted(f"{name[0]} × {name[1]}" for name in own if name not in others)
    return [f"Only in '{experiment}': {', '.join(unmatched)}."] if unmatched else []


# Output as JSON, CSV or Markdown.


def against_headline(found: ExperimentComparison) -> str:
    """Return a sentence on what was compared with what, and how many rows changed."""
    verdicts = [change.verdict for change in found.changes]
    counts = ", ".join(f"{verdicts.count(name)} {name}" for name in MARKS if name in verdicts)
    basis = f"{len(found.scenarios)} {plural('scenario', len(found.scenarios))}"
    mark = "PROVISIONAL: scored by rules. " if found.provisional else ""
    return f"{mark}{found.experiment} against {found.other}, {len(verdicts)} rows on {basis}: {counts}."


def remark(change: Change) -> str:
    changed = [("prompt", change.prompt_changed), ("model", change.model_changed)]
    return ", ".join(f"{what} changed" for what, yes in changed if yes)


def _row(change: Change) -> dict[str, Any]:
    return {**asdict(change), "change": change.change, "verdict": change.verdict}


def as_json(found: ExperimentComparison) -> str:
    data = {
        "experiment": found.experiment,
        "against": found.other,
        "scenarios": list(found.scenarios),
        "unit": found.unit,
        "units": found.units,
        "provisional": found.provisional,
        "says": [against_headline(found), *found.notes],
        "changes": [_row(change) for change in found.changes],
    }
    return json_text(data)


def as_csv(found: ExperimentComparison) -> str:
    return csv_text([_row(change) for change in found.changes]).rstrip("\n")


def as_markdown(found: ExperimentComparison) -> str:
    head = ["", "model", "prompt", "before", "now", "change", "95 %", "verdict", "remark"]
    lines = [f"**{markdown_text(against_headline(found))}**", "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for change in found.changes:
        cells = [
            MARKS[change.verdict],
            markdown_text(change.model),
            markdown_text(change.prompt),
            figure(change.before),
        ]
        cells += [figure(change.now), f"{change.change:+.2f}", change_range(change), change.verdict, remark(change)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, *([""] if found.notes else []), *(f"- {markdown_text(text)}" for text in found.notes)])


def change_range(change: Change) -> str:
    return "–" if change.low is None or change.high is None else f"{_signed(change.low)} … {_signed(change.high)}"


def _signed(value: float) -> str:
    return f"{round(value, 1) + 0.0:+.1f}"  # never -0.0


FORMATS = {"json": as_json, "csv": as_csv, "markdown": as_markdown}
