"""Output of `tipbench judge`: what was exported, what was applied, and the status of the judges."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from tipbench.bench.judge.apply import Applied, ApplyOptions
from tipbench.bench.judge.drift import ENOUGH_ANCHORS
from tipbench.bench.judge.export import Exported
from tipbench.bench.judge.file import schema_path
from tipbench.bench.judge.sample import seconds_for
from tipbench.bench.judge.status import BatchLine, Disputed, JudgeStatus
from tipbench.bench.suites.rubric import Rubric
from tipbench.cli.console import out
from tipbench.core.text import duration, utc_minute
from tipbench.core.untrusted import printable

_BARS = "▁▂▃▄▅▆▇█"


def show_exported(path: Path, exported: Exported, then: str) -> None:
    extra = []
    if exported.anchors:
        extra.append(f"{exported.anchors} anchors")
    if exported.repeats:
        extra.append(f"{exported.repeats} repeats")
    extras = f", {' and '.join(extra)} among them unmarked" if extra else ""
    out.print(
        f"{exported.items} items wait in {path} to be scored ({exported.candidates} candidates{extras}); about "
        f"{duration(seconds_for(exported.items))} for a person. {schema_path(path).name} next to it helps editors.",
        soft_wrap=True,
    )
    if exported.left_out:
        out.print(
            f"Up to {exported.sample} of each cell's candidates are in it, {exported.left_out} are left out; --sample "
            f"K takes K of each cell.",
            soft_wrap=True,
        )
    out.print(
        f"Fill in 'scores' of every item by the rubric in the file, a whole number each.\nThen: {then}", soft_wrap=True
    )


def show_applied(applied: Applied, options: ApplyOptions) -> None:
    _show_drift(applied)
    if not applied.changed:
        out.print("The same scores were applied before; nothing changed.")
        if applied.quarantine:
            _show_quarantine(applied)
        return
    kind = "provisional scores" if applied.provisional else "scores"
    verb = "would be written" if options.dry_run else "written"
    out.print(
        f"{kind} of {applied.candidates} candidates by '{applied.judge}' {verb} to {applied.runs} runs{_more(applied)}."
    )
    if applied.settled.unlinked_groups:
        groups = " and ".join(" with ".join(group) for group in applied.settled.unlinked_groups)
        out.print(f"{groups} share too few candidates to be put on one scale.", style="yellow", soft_wrap=True)
    if applied.settled.gone:
        out.print(f"{applied.settled.gone} runs that were scored before are gone from MLflow.", style="yellow")
    if applied.quarantine:
        _show_quarantine(applied)


def _more(applied: Applied) -> str:
    parts = []
    if applied.left:
        parts.append(f"{applied.left} candidates are left for later")
    if applied.replaced:
        parts.append(f"{applied.replaced} had other scores before, which stay in the history")
    if applied.overruled:
        parts.append(f"{applied.overruled} candidates with an overruled flag")
    return "".join(f"; {part}" for part in parts)


def _show_quarantine(applied: Applied) -> None:
    if applied.accepted:
        out.print(f"The judge drifted ({applied.quarantine}); accepted by {applied.accepted}", soft_wrap=True)
    elif applied.provisional:
        out.print(f"Drift: {applied.quarantine}", style="yellow", soft_wrap=True)
    else:
        out.print(
            f"IN QUARANTINE, the scores are kept and do not count: {applied.quarantine}\nRead the rubric again and "
            f"score the candidates anew (--export), or let them count with --apply FILE --accept-drift 'why'.",
            style="bold yellow",
            soft_wrap=True,
        )


def _show_drift(applied: Applied) -> None:
    drift = applied.drift
    if not drift.assessable:
        out.print(
            f"Drift is not assessable: {drift.anchors} anchors, {ENOUGH_ANCHORS} are needed to tell.",
            style="dim",
            soft_wrap=True,
        )
        if drift.repeats:
            repeats = ", ".join(f"{name} {_repeats(asdict(found))}" for name, found in drift.repeats.items())
            out.print(f"What was scored twice: {repeats}.", soft_wrap=True)
        return
    borrowed = f", {drift.borrowed} of them from earlier batches" if drift.borrowed else ""
    table = _plain_table(f"'{applied.judge}' against {drift.anchors} anchors{borrowed}")
    for column in ("criterion", "offset", "κ", "scored twice"):
        table.add_column(column, justify="left" if column == "criterion" else "right")
    for name, found in drift.as_data()["criteria"].items():
        table.add_row(
            name, _offset(found), _kappa(found), _repeats(found), style="yellow" if found["problems"] else None
        )
    out.print(table)


def show_status(status: JudgeStatus, rubric: Rubric, labels: Mapping[tuple[str, int], str]) -> None:
    """Print the judges' batches, their drift over time, and how far they agree."""
    if not status.batches:
        out.print("No batch has been applied yet.")
        return
    _show_batches(status.batches, rubric)
    for judge in dict.fromkeys(line.judge for line in status.batches):
        _show_drift_history(judge, [line for line in status.batches if line.judge == judge], rubric)
    if status.alpha:
        alphas = ", ".join(f"{name} {_figure(value)}" for name, value in status.alpha.items())
        out.print(f"Krippendorff's α (ordinal) over the judges that count: {alphas}", soft_wrap=True)
    for pair in status.pairs:
        kappas = ", ".join(f"{name} {_figure(value)}" for name, value in pair.kappa.items())
        out.print(
            f"κ of {pair.judges[0]} and {pair.judges[1]} on {pair.shared} shared candidates: {kappas}", soft_wrap=True
        )
    if status.disputed:
        _show_disputed(status.disputed, rubric, labels)
    for flag, (overruled, of) in status.overruled.items():
        if of:
            out.print(f"{flag}: code checked it {of} times, judges saw it otherwise {overruled} times.")


def _show_batches(lines: Sequence[BatchLine], rubric: Rubric) -> None:
    table = _plain_table("Batches, in the order of their applying")
    table.add_column("judge")
    table.add_column("applied")
    table.add_column("candidates", justify="right")
    table.add_column("state")
    for name in rubric.criteria:
        table.add_column(f"{name}: offset · κ", justify="right", overflow="fold")
    for line in lines:
        criteria = line.drift.get("criteria", {})
        cells = [
            f"{_offset(criteria[n], short=True)} · {_kappa(criteria[n], short=True)}" if n in criteria else "–"
            for n in rubric.criteria
        ]
        when = utc_minute(line.applied_ms, zone=False)
        table.add_row(printable(line.judge), when, str(line.candidates), line.state, *cells)
    out.print(table)
    for line in lines:
        if line.quarantine and line.state != "provisional":
            accepted = f" — accepted by {line.accepted}" if line.accepted else ""
            out.print(
                f"{printable(line.judge)}: {printable(line.quarantine)}{printable(accepted)}",
                style="yellow",
                soft_wrap=True,
            )


def _show_drift_history(judge: str, lines: Sequence[BatchLine], rubric: Rubric) -> None:
    """Print a small plot of a judge's offsets, batch by batch; the middle means no drift."""
    assessed = [line for line in lines if line.drift.get("criteria")]
    if len(assessed) < 2:
        return
    for name, criterion in rubric.criteria.items():
        span = criterion.max - criterion.min
        values = [line.drift["criteria"][name]["offset"]["mean"] for line in assessed if name in line.drift["criteria"]]
        bars = "".join(_BARS[max(0, min(7, round(3.5 + 7 * value / span)))] for value in values)
        out.print(f"{printable(judge)}, {name}: {bars}  (offset of each batch, middle: none)")


def _show_disputed(found: Sequence[Disputed], rubric: Rubric, labels: Mapping[tuple[str, int], str]) -> None:
    table = _plain_table("What judges disagree on most")
    table.add_column("candidate", overflow="fold")
    judges = sorted({judge for one in found for judge in one.scores})
    for judge in judges:
        table.add_column(printable(judge), justify="right")
    for one in found:
        scores = [
            "/".join(str(one.scores[judge][name]) for name in rubric.criteria) if judge in one.scores else "–"
            for judge in judges
        ]
        table.add_row(printable(labels.get(one.item, ""), 90), *scores)
    out.print(table)


def _plain_table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)


def _offset(found: Mapping[str, Any], short: bool = False) -> str:
    value = found["offset"]
    mean = f"{value['mean']:+.2f}"
    return mean if short else f"{mean} ({value['low']:+.2f} to {value['high']:+.2f})"


def _kappa(found: Mapping[str, Any], short: bool = False) -> str:
    value = found["kappa"]
    kappa = _figure(value["value"])
    return kappa if short else f"{kappa} ({value['low']:.2f} to {value['high']:.2f})"


def _repeats(found: Mapping[str, Any]) -> str:
    value = found["repeats"]
    return (
        "–" if value is None else f"{value['mean_difference']:.2f} apart, {value['same']:.0%} the same ({value['n']})"
    )


def _figure(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}"
