"""`tipbench judge`: phase B."""

import getpass
import os
from pathlib import Path
from typing import Any

import click

from tipbench.bench.bench import Bench
from tipbench.bench.judge.apply import ApplyOptions
from tipbench.bench.judge.calibration import load_calibrations
from tipbench.bench.judge.judges.catalog import CATALOG as JUDGES
from tipbench.bench.judge.judges.catalog import PERSON, check_judge, person
from tipbench.bench.judge.sample import EVERYTHING, FEWEST_ITEMS, BatchSize
from tipbench.cli.console import bench_of, hint, out
from tipbench.cli.flags import gather, option_flags, progress_flag
from tipbench.cli.judge_report import (
    show_applied,
    show_calibration,
    show_calibrations,
    show_details,
    show_exported,
    show_exported_folder,
    show_status,
)
from tipbench.core.errors import JudgeLater, NothingPending
from tipbench.core.settings import Settings
from tipbench.core.untrusted import printable

_PATH = click.Path(path_type=Path)


@click.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench judge --experiment tip-bench-first --export judge.json\n"
    "  tipbench judge --experiment tip-bench-first --export first.json --items 20\n"
    "  tipbench judge --experiment tip-bench-first --apply judge.json --dry-run\n"
    "  tipbench judge --experiment tip-bench-first --apply judge.json\n"
    "  tipbench judge --experiment tip-bench-first --run lexical\n"
    "  tipbench judge --experiment tip-bench-first --export folder --for agent --judge claude-code-2.1\n"
    "  TIPBENCH_JUDGE_AGENT=claude-code tipbench judge --experiment tip-bench-first --run agent\n"
    "  TIPBENCH_JUDGE_COMMAND='./my-agent --score' tipbench judge --experiment tip-bench-first --run command\n"
    "  TIPBENCH_JUDGE_AGENT=claude-code tipbench judge --run agent --calibrate\n"
    "  tipbench judge --experiment tip-bench-first --status\n\n"
    "In the file, every item needs a whole number for each criterion; the rubric in it says what they mean. "
    "Model and prompt version are not in the file: judging is blind. Some items are anchors, whose right scores are "
    "known, and some are in the file twice. They show whether a judge drifts; if so, the batch is on hold and does not "
    "count until it is scored again or somebody accepts it."
)
@option_flags("experiment", "mlflow_url", "seed", "ollama_url", "concurrency")
@click.option("--suite", help="Judge by this suite's rubric instead of the one stored with the experiment.")
@click.option(
    "--judge", "judge_name", help="The judge's name, for --export and --run.  [default: person, or --run's name]"
)
@click.option(
    "--export",
    "export",
    type=_PATH,
    metavar="FILE",
    help="Write the pending candidates to this file, or with --for agent to this folder.",
)
@click.option(
    "--for",
    "reader",
    type=click.Choice(["agent"]),
    help="Write a folder for a coding agent: instructions, items in parts, and room for its scores.",
)
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="K",
    help="Candidates of each cell, for --export and --run.  [default: 1; all for --run]",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N candidates in the batch.")
@click.option(
    "--items",
    type=click.IntRange(min=FEWEST_ITEMS),
    metavar="N",
    help="At most N items in the batch, anchors and repeats counted in: 20 take a person about 15 minutes. "
    "A new judge's first 20 tell how the judge compares with the rubric.",
)
@click.option(
    "--apply",
    "apply",
    type=_PATH,
    metavar="FILE",
    help="Check this filled-in file or an agent's folder, and write its scores back.",
)
@click.option("--partial", is_flag=True, help="Apply the cells that are scored completely; the rest stay pending.")
@click.option("--dry-run", is_flag=True, help="Show what --apply would write; write nothing.")
@click.option("--replace", is_flag=True, help="Replace the judge's earlier scores.")
@click.option("--accept-drift", metavar="WHY", help="Let the batch count although it drifted; the reason is stored.")
@click.option(
    "--run",
    "run_name",
    metavar="NAME",
    help=f"Have a judge that runs by itself score what is pending: {', '.join(JUDGES)}, or one that is configured in "
    "judges.toml.",
)
@progress_flag
@click.option(
    "--calibrate",
    is_flag=True,
    help="With --run: have the judge score the suite's anchors twice, and say what a batch by it would be worth.",
)
@click.option("--status", is_flag=True, help="Say whether the judges can be trusted, and what still waits for one.")
@click.option("--verbose", "-v", is_flag=True, help="With --status: every batch, drift, and agreement between judges.")
def command(
    suite: str | None,
    judge_name: str | None,
    export: Path | None,
    reader: str | None,
    sample: int | None,
    limit: int | None,
    items: int | None,
    apply: Path | None,
    partial: bool,
    dry_run: bool,
    replace: bool,
    accept_drift: str | None,
    run_name: str | None,
    status: bool,
    verbose: bool,
    progress: Path | None,
    calibrate: bool,
    **given: Any,
) -> int:
    """Have candidates judged blind: phase B.

    --export writes one JSON file, a person or an agent fills in the scores, --apply writes them back, all or
    nothing. --run has a judge that runs by itself do both. --status says whether the judges can be trusted.

    Exit status: 0 done, 1 the batch is on hold and does not count, 2 refused.
    """
    if sum(bool(choice) for choice in (export, apply, run_name, status)) != 1:
        raise click.UsageError("give one of --export FILE, --apply FILE, --run NAME or --status")
    _check_flags(apply is not None, bool(export or run_name), (sample, limit, items), dry_run, replace, accept_drift)
    if reader and not (export and judge_name):
        raise click.UsageError(
            "--for agent goes with --export DIR and --judge NAME, which says whose scores they will be, such as "
            "claude-code-2.1"
        )
    if partial and not (apply or run_name):
        raise click.UsageError("--partial goes with --apply and --run")
    if verbose and not status:
        raise click.UsageError("--verbose goes with --status")
    if calibrate and not run_name:
        raise click.UsageError("--calibrate goes with --run NAME")
    if progress and not run_name:
        raise click.UsageError("--progress goes with --run")
    options = gather(given, suite=suite)
    if run_name:
        check_judge(run_name, Settings())
    apply_options = ApplyOptions(partial, dry_run, replace, _accepted(accept_drift))
    size = BatchSize(sample or (EVERYTHING.sample if run_name or reader else 1), limit, items)
    if export:
        person(judge_name or PERSON)
    from tipbench.cli.progress import CollectingObserver
    from tipbench.cli.progress_file import ProgressFile

    progress_file = ProgressFile(progress)
    progress_file.experiment = options.experiment
    with progress_file, bench_of(options, CollectingObserver(progress_file)) as bench:
        if calibrate:
            return _calibrate(bench, run_name or "", judge_name)
        if status:
            found, texts = bench.status()
            show_status(found, options.experiment)
            show_calibrations(load_calibrations(bench.context.settings.home), found)
            if verbose:
                show_details(found, bench.rubric, texts)
            elif found.judges:
                out.print("More: --verbose (every batch, drift over time, agreement, disputed texts).", style="dim")
            return 0
        if export and reader:
            exported = bench.export_folder(export, judge_name or PERSON, size)
            show_exported_folder(export, exported, hint("judge", options, "--apply", str(export)))
            return 0
        if export:
            exported = bench.export(export, judge_name or PERSON, size)
            show_exported(export, exported, hint("judge", options, "--apply", str(export)))
            return 0
        if apply:
            applied = bench.apply(apply, apply_options)
        else:
            try:
                applied = bench.judge(run_name or "", judge_name, size, apply_options)
            except (NothingPending, JudgeLater) as error:
                if not progress:
                    raise
                progress_file.finish(str(error), error.items if isinstance(error, JudgeLater) else 0)
                return 0
            progress_file.finish(applied.in_short)
        show_applied(applied, apply_options)
        if not apply_options.dry_run:
            then = hint("judge", options, "--status") if applied.in_quarantine else hint("compare", options)
            out.print(f"Next: {then}", soft_wrap=True)
    return 1 if applied.in_quarantine else 0


def _calibrate(bench: Bench, name: str, judge_name: str | None) -> int:
    found = bench.calibrate(name, judge_name)
    show_calibration(found, hint("judge", bench.options, "--run", name))
    return 0 if found.would_count else 1


def _check_flags(applies: bool, makes_batch: bool, sizes: tuple[Any, ...], *apply_flags: Any) -> None:
    if any(apply_flags) and not applies:
        raise click.UsageError("--dry-run, --replace and --accept-drift go with --apply")
    if any(sizes) and not makes_batch:
        raise click.UsageError("--sample, --limit and --items go with --export and --run")


def _accepted(why: str | None) -> str:
    """Return who accepted the drift, and why; empty without --accept-drift."""
    if why is None:
        return ""
    if not why.strip():
        raise click.UsageError("--accept-drift needs a reason: say why the batch should count although it drifted")
    try:
        who = getpass.getuser()
    except (KeyError, OSError):  # in a container, the user may have no name
        who = f"user {os.getuid()}"
    return printable(f"{who}: {why.strip()}", 500)
