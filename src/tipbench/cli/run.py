"""`tipbench run`: all phases."""

from pathlib import Path
from typing import Any

import click

from tipbench.cli.collect import run_collection
from tipbench.cli.compare import show_leaderboard
from tipbench.cli.flags import config_flag, gather, option_flags
from tipbench.cli.judge import show_applied, show_exported
from tipbench.cli.workplace import note, out, workplace
from tipbench.engines.catalog import open_engines
from tipbench.judge.judges.interface import JudgeName
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
def command(config: Path | None, export: Path | None, **given: Any) -> int:
    """All phases: collect, then export (or the configured --judge), then compare."""
    return run_all(gather(given, config), Settings(), export)


def run_all(options: Options, settings: Settings, export: Path | None = None) -> int:
    """Everything from the models' admission to the leaderboard."""
    suite = load_suite(options.suite)
    file = export or Path(f"{options.experiment.replace('/', '-')}-judge.json")
    if not options.judge:
        check_export_path(file)
    with open_engines(options, settings) as engines:
        models = admit_request(options, suite, engines.of)
        with workplace(options.mlflow_url, options.experiment, create=True) as work:
            plan = plan_collection(options, suite, models, work.store)
            collected = run_collection(options, suite, plan, engines.of, work)
            judge_and_compare(options, suite, work, file)
    return 1 if collected.failed else 0


def judge_and_compare(options: Options, suite: Suite, work: Workplace, file: Path) -> None:
    experiment = work.store.experiment(options.experiment)
    judge = JudgeName(options.judge or "person")
    if not something_pending(work, experiment, suite.rubric, judge):
        note(f"Nothing waits for judge '{judge.name}'.")
    elif options.judge:
        show_applied(run_judge(work, experiment, suite.rubric, options.judge, options.seed))
    else:
        count = export_for_judge(work, experiment, suite.rubric, judge, options.seed, file)
        show_exported(options.experiment, file, count)
    show_leaderboard(compare(work.store, experiment, suite.rubric))
    if not options.judge:
        out.print("The leaderboard fills once the scores are applied.")
