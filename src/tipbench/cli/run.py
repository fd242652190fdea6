"""`tipbench run`: all phases."""

from pathlib import Path
from typing import Any

import click

from tipbench.cli.collect import deliver_before, run_collection, set_aside, sole_use_of
from tipbench.cli.compare import show_leaderboard
from tipbench.cli.flags import config_flag, fresh_flag, gather, option_flags, retry_flag, wait_flag
from tipbench.cli.judge import show_applied, show_exported
from tipbench.cli.workplace import hint, note, workplace
from tipbench.engines.catalog import open_engines
from tipbench.judge.judges.catalog import person
from tipbench.options import Options
from tipbench.pipeline import (
    Workplace,
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
            show_leaderboard(compare(work.store, experiment, suite.rubric))
    return 0 if collected.is_complete else 1


def _judge(options: Options, suite: Suite, work: Workplace, export: Path | None) -> None:
    experiment = work.store.experiment(options.experiment)
    judge = options.judge or _PERSON
    if not something_pending(work, experiment, suite.rubric, judge):
        note(f"Nothing waits for judge '{judge}'.")
        return
    if options.judge:
        show_applied(run_judge(work, experiment, suite.rubric, judge, options.seed))
        return
    file = export or Path(f"{options.experiment.replace('/', '-')}-judge.json")
    then = hint("judge", options, "--apply", str(file))
    if file.exists():
        note(f"{file} is there from before and may hold scores, so it was left as it is. Then: {then}")
        return
    count = export_for_judge(work, experiment, suite.rubric, person(judge), options.seed, file)
    show_exported(file, count, then)
