"""`tipbench run`: all phases."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from tipbench.cli.collect import deliver_before, run_collection, set_aside, sole_use_of
from tipbench.cli.flags import config_flag, fresh_flag, gather, option_flags, retry_flag, wait_flag
from tipbench.cli.judge import ALL, opened_judge
from tipbench.cli.judge_report import show_applied, show_exported
from tipbench.cli.judging import gold_items, judging_alone
from tipbench.cli.workplace import hint, look_at, note, workplace
from tipbench.engines.catalog import open_engines
from tipbench.judge.apply import Manner
from tipbench.judge.judges.catalog import person
from tipbench.judge.sample import Extent
from tipbench.options import Options
from tipbench.pipeline import (
    admit_request,
    check_export_path,
    compare,
    export_for_judge,
    plan_collection,
    run_judge,
    something_pending,
)
from tipbench.settings import Settings
from tipbench.suites.load import load_suite
from tipbench.suites.suite import Suite
from tipbench.workplace import Workplace

_PERSON = "person"  # who judges an exported file, unless tipbench judge --judge says otherwise


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
@retry_flag
@fresh_flag
@wait_flag
def command(
    config: Path | None, export: Path | None, retry_failed: bool, fresh: bool, no_wait: bool, **given: Any
) -> int:
    """All phases: collect, then export (or the configured --judge), then compare."""
    options = gather(given, config)
    if export and not options.judge:
        check_export_path(export)
    return run_all(options, Settings(), export, retry_failed, fresh, wait=not no_wait)


def run_all(
    options: Options,
    settings: Settings,
    export: Path | None = None,
    retry_failed: bool = False,
    fresh: bool = False,
    wait: bool = True,
) -> int:
    """Everything from the models' admission to the leaderboard."""
    suite = load_suite(options.suite)
    options = suite.fit(options)
    with open_engines(options, settings) as engines:
        models = admit_request(options, suite, engines.of, settings.is_true("TIPBENCH_MEMORY_CHECK"))
        with workplace(options.mlflow_url, options.experiment, create=True) as work:
            with sole_use_of(engines, options, work, wait):
                deliver_before(work, options)
                if fresh:
                    set_aside(options, suite, models, work)
                plan = plan_collection(options, suite, models, work.store, retry_failed)
                collected = run_collection(options, suite, plan, engines.of, work)
            _judge(options, suite, work, export)
            experiment = work.store.experiment(options.experiment)
            from tipbench.cli.leaderboard import show_leaderboard  # brings numpy

            show_leaderboard(compare(look_at(work, experiment), suite.rubric))
    return 0 if collected.is_complete else 1


def _judge(options: Options, suite: Suite, work: Workplace, export: Path | None) -> None:
    experiment = work.store.experiment(options.experiment)
    gold = gold_items(experiment, suite.rubric, str(suite.folder))
    if options.judge:
        alone = partial(judging_alone, work, options.experiment)
        with opened_judge(options.judge, suite.rubric, options, work, None) as judge:
            if not something_pending(work, experiment, suite.rubric, judge.identity.name):
                note(f"Nothing waits for judge '{judge.identity.name}'.")
                return
            applied = run_judge(work, experiment, suite.rubric, judge, options.seed, Extent(ALL), gold, alone=alone)
        show_applied(applied, Manner())
        return
    if not something_pending(work, experiment, suite.rubric, None):
        note("Nothing waits for a judge.")
        return
    file = export or Path(f"{options.experiment.replace('/', '-')}-judge.json")
    then = hint("judge", options, "--apply", str(file))
    if file.exists():
        note(f"{file} is there from before and may hold scores, so it was left as it is. Then: {then}")
        return
    exported = export_for_judge(work, experiment, suite.rubric, person(_PERSON), options.seed, file, Extent(), gold)
    show_exported(file, exported, then)
