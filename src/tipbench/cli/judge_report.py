"""Output of `tipbench judge`: what was exported, what was applied, and the status of the judges."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from tipbench.bench.judge.apply import Applied, ApplyOptions
from tipbench.bench.judge.calibration import Calibration
from tipbench.bench.judge.drift import Drift
from tipbench.bench.judge.export import Exported
from tipbench.bench.judge.file import schema_path
from tipbench.bench.judge.sample import seconds_for
from tipbench.bench.judge.status import BatchLine, Disputed, JudgeStatus, status_answer
from tipbench.bench.suites.anchors import ENOUGH_ANCHORS
from tipbench.bench.suites.rubric import Rubric
from tipbench.cli.console import out, print_answer
from tipbench.core.text import counted, duration, utc_minute
from tipbench.core.untrusted import printable

_BARS = "▁▂▃▄▅▆▇█"


def show_exported(path: Path, exported: Exported, then: str) -> None:
    extra = []
    if exported.anchors:
        extra.append(counted(exported.anchors, "anchor"))
    if exported.repeats:
        extra.append(counted(exported.repeats, "repeat"))
    extras = f", with {' and '.join(extra)} unmarked among them" if extra else ""
    out.print(
        f"{counted(exported.items, 'item')} to score in {path} ({counted(exported.candidates, 'candidate')}{extras}); "
        f"about {duration(seconds_for(exported.items))} for a person. {schema_path(path).name} helps editors.",
        soft_wrap=True,
    )
    if exported.left_out:
        each = (
            "one candidate of each cell, because more scenarios tell more than more candidates of one"
            if exported.sample == 1
            else f"up to {exported.sample} of each cell's candidates, one of every cell before a second of any"
        )
        out.print(
            f"It holds {each}; {exported.left_out} are left out. --sample K takes K of each cell.", soft_wrap=True
        )
    out.print(
        f"Fill in 'scores' of every item by the rubric in the file, a whole number each.\nThen: {then}", soft_wrap=True
    )


def show_exported_folder(folder: Path, exported: Exported, then: str) -> None:
    out.print(
        f"{counted(exported.items, 'item')} to score in {folder} ({counted(exported.candidates, 'candidate')}, with "
        f"{counted(exported.anchors, 'anchor')} and {counted(exported.repeats, 'repeat')} unmarked among them).",
        soft_wrap=True,
    )
    out.print(
        f"Have the agent follow {folder / 'INSTRUCTIONS.md'}; it writes its scores into {folder / 'scores'}.\n"
        f"Then, whole or part by part: {then}",
        soft_wrap=True,
    )


def show_applied(applied: Applied, options: ApplyOptions) -> None:
    """Print what was written and whether it counts, then how the judge agrees with the anchors."""
    if applied.changed:
        kind = "Provisional scores" if applied.provisional else "Scores"
        verb = "would be written" if options.dry_run else "were written"
        cells = counted(applied.runs, "cell")
        candidates = counted(applied.candidates, "candidate")
        out.print(f"{kind} of {candidates} by '{applied.judge}' {verb} to {cells}{_more(applied)}.", soft_wrap=True)
    else:
        out.print("The same scores were applied before; nothing changed.")
    if applied.quarantine:
        _show_quarantine(applied)
    if applied.changed and applied.settled.unlinked_groups:
        groups = " and ".join(" with ".join(group) for group in applied.settled.unlinked_groups)
        out.print(f"{groups} share too few candidates to be put on one scale.", style="yellow", soft_wrap=True)
    if applied.changed and applied.settled.gone:
        out.print(f"{applied.settled.gone} runs that were scored before are gone from MLflow.", style="yellow")
    _show_drift(applied.judge, applied.drift)


def show_calibration(found: Calibration, then: str) -> None:
    """Print what a batch by this judge would be worth, and the figures behind that."""
    step = (
        f"let it judge: {then}" if found.would_count else "give it another model or other instructions, and try again"
    )
    print_answer(found.says, step)
    _show_drift(found.judge, found.drift)
    if found.cost:
        out.print(f"It took {found.cost.removeprefix(', ')}.", style="dim")


def show_calibrations(known: Sequence[Calibration], status: JudgeStatus) -> None:
    """Print the calibrations of those judges that have scored something."""
    judges = {line.judge for line in status.judges}
    for one in known:
        if one.judge in judges:
            out.print(f"{printable(one.judge)} was {one.in_short}.", style="dim", soft_wrap=True)


def _more(applied: Applied) -> str:
    parts = []
    if applied.left:
        parts.append(f"{counted(applied.left, 'candidate')} left for later")
    if applied.replaced:
        parts.append(f"{applied.replaced} had other scores before, which remain in the history")
    if applied.overruled:
        parts.append(f"the judge overruled a flag of {counted(applied.overruled, 'candidate')}")
    return "".join(f"; {part}" for part in parts)


def _show_quarantine(applied: Applied) -> None:
    if applied.accepted:
        out.print(f"The judge drifted ({applied.quarantine}); accepted by {applied.accepted}", soft_wrap=True)
    elif applied.provisional:
        out.print(f"Drift: {applied.quarantine}", style="yellow", soft_wrap=True)
    else:
        out.print(
            f"ON HOLD: the scores are stored and don't count: {applied.quarantine}\nRead the rubric again and "
            f"score the candidates anew (--export), or let them count with --apply FILE --accept-drift 'why'.",
            style="bold yellow",
            soft_wrap=True,
        )


def _show_drift(judge: str, drift: Drift) -> None:
    if not drift.assessable:
        out.print(
            f"Drift is not assessable: {counted(drift.anchors, 'anchor')} scored, and it takes {ENOUGH_ANCHORS}.",
            style="dim",
            soft_wrap=True,
        )
        if drift.repeats:
            repeats = ", ".join(f"{name} {_repeats(asdict(found))}" for name, found in drift.repeats.items())
            out.print(f"What was scored twice: {repeats}.", soft_wrap=True)
        return
    borrowed = f", {drift.borrowed} of them from earlier batches" if drift.borrowed else ""
    table = _plain_table(f"'{judge}' against {drift.anchors} anchors{borrowed}")
    for column in ("criterion", "offset", "κ", "scored twice"):
        table.add_column(column, justify="left" if column == "criterion" else "right")
    for name, found in drift.as_data()["criteria"].items():
        table.add_row(
            name, _offset(found), _kappa(found), _repeats(found), style="yellow" if found["problems"] else None
        )
    out.print(table)


def show_status(status: JudgeStatus, experiment: str) -> None:
    """Print whether the judges can be trusted and what to do next, with a line for each judge."""
    answer = status_answer(status, experiment)
    print_answer(answer.says, answer.next)
    if not status.judges:
        return
    table = _plain_table("")
    table.add_column("judge", overflow="fold")
    table.add_column("batches", justify="right", no_wrap=True)
    table.add_column("candidates", justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("against the anchors", overflow="fold")
    for line in status.judges:
        figures = (str(line.batches), str(line.candidates), line.state, line.anchors)
        table.add_row(printable(line.judge), *figures, style="yellow" if line.on_hold else None)
    out.print(table)


def show_details(status: JudgeStatus, rubric: Rubric, labels: Mapping[tuple[str, int], str]) -> None:
    """Print the judges' batches, their drift over time, and how far they agree."""
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
            out.print(f"{flag}: checked by code {of} times, overruled by judges {overruled} times.")


def _show_batches(lines: Sequence[BatchLine], rubric: Rubric) -> None:
    table = _plain_table("Batches, in the order in which they were applied")
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
