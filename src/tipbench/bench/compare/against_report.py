"""Two experiments side by side as JSON, CSV or Markdown."""

from dataclasses import asdict
from typing import Any

from tipbench.bench.compare.against import Against, Change
from tipbench.bench.compare.messages import figure
from tipbench.core.text import plural
from tipbench.core.untrusted import csv_text, json_text, markdown_text

MARKS = {"better": "▲", "worse": "▼", "may be chance": "", "can't be told": "?"}


def against_headline(found: Against) -> str:
    """What was held against what, in a sentence."""
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


def as_json(found: Against) -> str:
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


def as_csv(found: Against) -> str:
    return csv_text([_row(change) for change in found.changes]).rstrip("\n")


def as_markdown(found: Against) -> str:
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
