"""`tipbench run`: all phases."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from tipbench.bench.bench import Bench
from tipbench.bench.judge.apply import ApplyOptions
from tipbench.bench.judge.file import check_export_path
from tipbench.bench.judge.judges.catalog import PERSON
from tipbench.bench.options import Options
from tipbench.bench.suites.anchors import without_anchors
from tipbench.cli.collect import show_summary
from tipbench.cli.console import bench_of, hint, note
from tipbench.cli.flags import config_flag, fresh_flag, gather, option_flags, progress_flag, retry_flag, wait_flag
from tipbench.cli.judge_report import show_applied, show_exported
from tipbench.cli.progress import CollectingObserver
from tipbench.cli.progress_file import ProgressFile
from tipbench.core.errors import JudgeLater, NothingPending
from tipbench.core.text import capital, counted


@click.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench run --models embedded/smollm2:135m --experiment tip-bench-first --judge lexical\n"
    "  tipbench run --config bench.yaml --export judge.json"
)
@option_flags()
@config_flag
@click.option(
    "--export",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Without --judge: the file to score.  [default: EXPERIMENT-judge.json]",
)
@progress_flag
@retry_flag
@fresh_flag
@wait_flag
def command(
    config: Path | None,
    export: Path | None,
    progress: Path | None,
    retry_failed: bool,
    fresh: bool,
    no_wait: bool,
    **given: Any,
) -> int:
    """Run all phases: collect, then export for a person (or run --judge), then compare."""
    with ProgressFile(progress) as progress_file:
        options = gather(given, config)
        if export and not options.judge:
            check_export_path(export)
        return run_all(options, progress_file, export, retry_failed=retry_failed, fresh=fresh, wait=not no_wait)


def run_all(options: Options, progress_file: ProgressFile, export: Path | None = None, **collect_options: Any) -> int:
    """Run all phases and return the exit status; `collect_options` are passed to `Bench.collect`."""
    observer = CollectingObserver(progress_file)
    with bench_of(options, observer) as bench:
        bench.set_options()
        progress_file.experiment = bench.options.experiment
        progress_file.begin("starting")
        if bench.is_decision:
            return _decide(bench, observer, progress_file)
        with observer.displayed():
            collected = bench.collect(**collect_options)
        show_summary(bench.options, collected, bench.store.address)
        if warning := without_anchors(bench.suite, bench.context.settings):
            note(warning)
        if collected.undelivered:  # what MLflow does not have can't be judged
            progress_file.finish(f"{collected.in_short}; run it again to deliver them and continue")
            return 1
        progress_file.begin("judge")
        judged = _run_judge(bench, bench.options.judge) if bench.options.judge else _export(bench, export)
        progress_file.begin("compare")
        from tipbench.cli.leaderboard import show_leaderboard  # imports numpy

        show_leaderboard(bench.compare())
    progress_file.finish(f"{collected.in_short}; {judged.in_short}", judged.waiting_items)
    return 0 if collected.is_complete else 1


def _decide(bench: Bench, observer: CollectingObserver, progress_file: ProgressFile) -> int:
    """Go on with the decision that the experiment holds; without an automatic judge, generate what is judged next."""
    with observer.displayed():
        found = bench.decide(bench.options.judge)
    note(found.verdict.says)
    progress_file.finish(found.verdict.says, found.items_for(PERSON))
    return 0


@dataclass(frozen=True)
class _Judged:
    """The outcome of the judging phase."""

    in_short: str  # what happened, so that it stays true after the scores have come
    waiting_items: int = 0


def _export(bench: Bench, export: Path | None) -> _Judged:
    """Export what is pending for a person; an existing file is left unchanged."""
    if not bench.pending():
        note("Nothing waits for a judge.")
        return _Judged("nothing was left to judge")
    file = export or Path(f"{bench.options.experiment.replace('/', '-')}-judge.json")
    then = hint("judge", bench.options, "--apply", str(file))
    if file.exists():
        note(f"{file} exists already and may hold scores, so it was not overwritten. Once it is filled in: {then}")
        return _Judged(f"{file.name} exists already and was not overwritten")
    exported = bench.export(file, PERSON)
    show_exported(file, exported, then)
    return _Judged(f"{counted(exported.items, 'item')} exported for a judge", exported.items)


def _run_judge(bench: Bench, name: str) -> _Judged:
    """Have an automatic judge score what is pending; if it answers later, the run goes on without it."""
    try:
        applied = bench.judge(name)
    except NothingPending as nothing:
        note(f"Nothing waits for judge '{nothing.judge}'.")
        return _Judged(f"nothing was left for judge '{nothing.judge}'")
    except JudgeLater as later:
        note(f"{capital(later)}.")
        return _Judged(f"batch {later.batch} was sent to the {name} judge", later.items)
    show_applied(applied, ApplyOptions())
    return _Judged(applied.in_short)
