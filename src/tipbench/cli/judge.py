"""`tipbench judge`: phase B."""

from pathlib import Path
from typing import Any

import click

from tipbench.cli.flags import gather, option_flags
from tipbench.cli.workplace import chosen_rubric, hint, out, workplace
from tipbench.judge.apply import Applied
from tipbench.judge.judges.catalog import check_judge, person
from tipbench.pipeline import apply_scores, export_for_judge, run_judge

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench judge --experiment tip-bench-first --export judge.json\n"
    "  tipbench judge --experiment tip-bench-first --apply judge.json\n"
    "  tipbench judge --experiment tip-bench-first --run lexical\n\n"
    "In the file, every item needs a whole number for each criterion; the rubric in it says what they mean. "
    "Model and prompt version are not in the file: judging is blind."
)
@option_flags("experiment", "mlflow_url", "seed")
@click.option("--suite", help="Judge by this suite's rubric instead of the one kept with the experiment.")
@click.option("--judge", "judge_name", default="person", help="Who judges, for --export.  [default: person]")
@click.option("--export", "export", type=_FILE, metavar="FILE", help="Write the pending candidates to this file.")
@click.option(
    "--apply",
    "apply",
    type=_FILE,
    metavar="FILE",
    help="Check this filled-in file and write its scores back.",
)
@click.option("--run", "run_name", metavar="NAME", help="Have a judge that runs by itself score what is pending.")
def command(
    suite: str | None,
    judge_name: str,
    export: Path | None,
    apply: Path | None,
    run_name: str | None,
    **given: Any,
) -> int:
    """Phase B: have the candidates judged blind.

    --export writes one JSON file, a person or an agent fills in the scores, --apply writes them back, all or
    nothing. --run lexical scores by rules: provisional, to try the path out.
    """
    if sum(choice is not None for choice in (export, apply, run_name)) != 1:
        raise click.UsageError("say one of --export FILE, --apply FILE or --run NAME")
    options = gather(given)
    judge = person(judge_name) if export else None
    if run_name:
        check_judge(run_name)
    with workplace(options.mlflow_url, options.experiment) as work:
        experiment = work.store.experiment(options.experiment)
        if apply:
            show_applied(apply_scores(work, experiment, apply))
            out.print(f"Next: {hint('compare', options)}", soft_wrap=True)
            return 0
        rubric = chosen_rubric(work, experiment, suite)
        if run_name:
            show_applied(run_judge(work, experiment, rubric, run_name, options.seed))
            out.print(f"Next: {hint('compare', options)}", soft_wrap=True)
        elif export and judge:
            count = export_for_judge(work, experiment, rubric, judge, options.seed, export)
            show_exported(export, count, hint("judge", options, "--apply", str(export)))
    return 0


def show_exported(path: Path, count: int, then: str) -> None:
    out.print(
        f"{count} candidates wait in {path} to be scored: fill in 'scores' of every item by the rubric in the file.\n"
        f"Then: {then}",
        soft_wrap=True,
    )


def show_applied(applied: Applied) -> None:
    if not applied.changed:
        out.print("The same scores were applied before; nothing changed.")
        return
    kind = "provisional scores" if applied.provisional else "scores"
    overruled = f"; {applied.overruled} candidates with an overruled flag" if applied.overruled else ""
    out.print(
        f"{kind} of {applied.candidates} candidates by '{applied.judge}' written to {applied.runs} runs{overruled}."
    )
