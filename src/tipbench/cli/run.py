"""`tipbench run`: all phases."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from tipbench.bench.engines.catalog import open_engines
from tipbench.bench.judge.apply import Manner
from tipbench.bench.judge.judges.catalog import PERSON, person
from tipbench.bench.judge.sample import EVERYTHING, Extent
from tipbench.bench.options import Options
from tipbench.bench.pipeline import (
    Collected,
    admit_request,
    check_export_path,
    compare,
    export_for_judge,
    plan_collection,
    run_judge,
    something_pending,
)
from tipbench.bench.records import GoldItem
from tipbench.bench.suites.load import load_suite
from tipbench.bench.suites.suite import Suite
from tipbench.bench.workplace import Workplace
from tipbench.cli.collect import deliver_before, run_collection, set_aside, sole_use_of
from tipbench.cli.flags import config_flag, fresh_flag, gather, option_flags, retry_flag, wait_flag
from tipbench.cli.judge import opened_judge
from tipbench.cli.judge_report import show_applied, show_exported
from tipbench.cli.judging import gold_items, judging_alone
from tipbench.cli.progress_file import ProgressFile
from tipbench.cli.workplace import hint, look_at, note, workplace
from tipbench.core.errors import JudgeLater
from tipbench.core.settings import Settings


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
    help="Without --judge: the file for the judge.  [default: EXPERIMENT-judge.json]",
)
@click.option(
    "--progress",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Keep a JSON file there that says how far the run is, and in the end what came of it.",
)
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
    """All phases: collect, then export (or the configured --judge), then compare."""
    with ProgressFile(progress) as told:
        options = gather(given, config)
        if export and not options.judge:
            check_export_path(export)
        return run_all(options, Settings(), export, retry_failed, fresh, wait=not no_wait, told=told)


def run_all(
    options: Options,
    settings: Settings,
    export: Path | None = None,
    retry_failed: bool = False,
    fresh: bool = False,
    wait: bool = True,
    told: ProgressFile | None = None,
) -> int:
    """Everything from the models' admission to the leaderboard."""
    told = told or ProgressFile(None)
    suite = load_suite(options.suite)
    options = suite.fit(options)
    told.experiment = options.experiment
    told.begin("starting")
    with open_engines(options, settings) as engines:
        models = admit_request(options, suite, engines.of, settings.is_true("TIPBENCH_MEMORY_CHECK"))
        with workplace(options.mlflow_url, options.experiment, create=True) as work:
            with sole_use_of(engines, options, work, wait, told.wait):
                told.begin("collect")
                deliver_before(work, options)
                if fresh:
                    set_aside(options, suite, models, work)
                plan = plan_collection(options, suite, models, work.store, retry_failed)
                collected = run_collection(options, suite, plan, engines.of, work, told)
            if collected.undelivered:  # nothing can be judged that MLflow does not have
                told.finish(f"{_in_short(collected)}; the same run again delivers them and goes on from there")
                return 1
            told.begin("judge")
            judged = _judge(options, suite, work, export)
            told.begin("compare")
            experiment = work.store.experiment(options.experiment)
            from tipbench.cli.leaderboard import show_leaderboard  # brings numpy

            show_leaderboard(compare(look_at(work, experiment), suite.rubric))
    told.finish(f"{_in_short(collected)}; {judged.in_short}", judged.waiting_items)
    return 0 if collected.is_complete else 1


@dataclass(frozen=True)
class _Judged:
    """What came of the judging."""

    in_short: str
    waiting_items: int = 0


def _in_short(collected: Collected) -> str:
    parts = [f"{collected.answered} {'cell' if collected.answered == 1 else 'cells'} answered"]
    if collected.stored_before:
        parts.append(f"{collected.stored_before} stored before")
    if collected.failed:
        parts.append(f"{collected.failed} failed")
    if collected.undelivered:
        parts.append(f"{collected.undelivered} not in MLflow yet, because it does not answer")
    return ", ".join(parts)


def _judge(options: Options, suite: Suite, work: Workplace, export: Path | None) -> _Judged:
    experiment = work.store.experiment(options.experiment)
    gold = gold_items(experiment, suite.rubric, str(suite.folder))
    if options.judge:
        return _run_judge(options.judge, options, suite, work, gold)
    if not something_pending(work, experiment, suite.rubric, None):
        note("Nothing waits for a judge.")
        return _Judged("nothing waits for a judge")
    file = export or Path(f"{options.experiment.replace('/', '-')}-judge.json")
    then = hint("judge", options, "--apply", str(file))
    if file.exists():
        note(f"{file} is there from before and may hold scores, so it was left as it is. Then: {then}")
        return _Judged(f"{file.name} is there from before and was left as it is")
    exported = export_for_judge(work, experiment, suite.rubric, person(PERSON), options.seed, file, Extent(), gold)
    show_exported(file, exported, then)
    return _Judged(
        f"{exported.items} {'item waits' if exported.items == 1 else 'items wait'} for a judge", exported.items
    )


def _run_judge(name: str, options: Options, suite: Suite, work: Workplace, gold: Sequence[GoldItem]) -> _Judged:
    """By a judge that runs by itself; one that answers later leaves the rest of the run to go on."""
    experiment = work.store.experiment(options.experiment)
    alone = partial(judging_alone, work, options.experiment)
    try:
        with opened_judge(name, suite.rubric, options, work, None) as judge:
            who = judge.identity.name
            if not something_pending(work, experiment, suite.rubric, who):
                note(f"Nothing waits for judge '{who}'.")
                return _Judged(f"nothing waits for judge '{who}'")
            applied = run_judge(work, experiment, suite.rubric, judge, options.seed, EVERYTHING, gold, alone=alone)
    except JudgeLater as later:
        note(f"{str(later)[0].upper()}{str(later)[1:]}.")
        return _Judged(f"batch {later.batch} waits for the {name} judge", later.items)
    show_applied(applied, Manner())
    return _Judged(applied.in_short)
