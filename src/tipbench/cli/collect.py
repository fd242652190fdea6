"""`tipbench collect`: phase A."""

from pathlib import Path
from typing import Any

import click

from tipbench.bench.collect.plan import Collected, Plan
from tipbench.bench.options import Options
from tipbench.bench.suites.anchors import without_anchors
from tipbench.bench.suites.suite import Suite
from tipbench.cli.console import bench_of, hint, note, out, ui_hint
from tipbench.cli.flags import config_flag, fresh_flag, gather, option_flags, retry_flag, wait_flag
from tipbench.cli.progress import CollectingObserver
from tipbench.core.text import counted, duration
from tipbench.core.untrusted import printable

_KEYS = (
    "models", "prompts", "experiment", "n_tips", "diversity", "n_scenarios", "temperature", "repeats", "seed",
    "max_tokens", "max_model_b", "unload", "concurrency", "suite", "ollama_url", "mlflow_url",
)  # fmt: skip


@click.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench collect --models qwen2.5:0.5b,gemma3:1b --prompts v1,v3-few-shot --dry-run\n"
    "  tipbench collect --models embedded/smollm2:135m --experiment tip-bench-first\n"
    "  tipbench collect --config bench.yaml --n-tips 3\n\n"
    "Exit status: 0 all cells answered, 1 some cells failed, 2 refused or stopped."
)
@option_flags(*_KEYS)
@config_flag
@click.option(
    "--dry-run", is_flag=True, help="Show cells, models with their sizes, and the time it takes; generate nothing."
)
@retry_flag
@fresh_flag
@wait_flag
def command(config: Path | None, dry_run: bool, retry_failed: bool, fresh: bool, no_wait: bool, **given: Any) -> int:
    """Generate candidates for every (model × prompt × scenario): phase A.

    Every cell becomes an MLflow run with the tag judge_pending=true. Running the same command again does only what is
    missing.
    """
    options = gather(given, config)
    observer = CollectingObserver()
    with bench_of(options, observer) as bench:
        if dry_run:
            plan = bench.plan(retry_failed=retry_failed)
            show_plan(bench.options, bench.suite, plan)
            return 0
        with observer.displayed():
            collected = bench.collect(retry_failed=retry_failed, fresh=fresh, wait=not no_wait)
        show_summary(bench.options, collected, bench.store.address)
        if warning := without_anchors(bench.suite, bench.context.settings):
            note(warning)
        if not collected.undelivered and (collected.candidates or collected.stored_before):
            by_code = bench.suite.rubric.by_code
            step = hint("compare", bench.options) if by_code else hint("judge", bench.options, "--export", "judge.json")
            out.print(f"Next: {step}", soft_wrap=True)
    return 0 if collected.is_complete else 1


def show_plan(options: Options, suite: Suite, plan: Plan) -> None:
    from rich.table import Table  # only here: a collection starts sooner without it

    table = Table(title=f"Models (limit: {options.max_model_b:g} billion parameters)", title_justify="left")
    for column in ("model", "engine", "parameters", "size", "quantization"):
        table.add_column(column)
    for model in plan.models:
        billions = "unknown" if model.billions is None else f"{model.billions:.3g} B"
        source = " (by name)" if model.parameters_from == "name" else ""
        size = "unknown" if model.size_bytes is None else f"{model.size_bytes / 1e6:.0f} MB"
        table.add_row(printable(model.name), model.engine, billions + source, size, model.quantization or "unknown")
    out.print(table)
    scenarios = suite.first_scenarios(options.n_scenarios)
    out.print(f"Prompts: {', '.join(options.prompt_names)}", soft_wrap=True)
    out.print(f"Scenarios: {', '.join(scenario.id for scenario in scenarios)}", soft_wrap=True)
    out.print(
        f"{len(plan.models)} models × {len(options.prompt_names)} prompts × {len(scenarios)} scenarios × "
        f"{options.repeats} repeats = {plan.cells} cells, {plan.stored} of them stored already."
    )
    basis = "from earlier cells of these models" if plan.measured else "a rule of thumb for a CPU"
    out.print(f"{len(plan.to_do)} to generate: about {duration(plan.seconds)} ({basis}).")


def show_summary(options: Options, collected: Collected, address: str) -> None:
    """Print what a collection did, and where its runs can be seen; `address` is MLflow's."""
    cells = "cell" if collected.answered == 1 else "cells"
    parts = [f"{collected.answered} {cells} answered with {collected.candidates} candidates"]
    if collected.empty:
        parts.append(f"{collected.empty} of them without a usable one")
    if collected.stored_before:
        parts.append(f"{collected.stored_before} stored before")
    if collected.failed_before:
        parts.append(f"{collected.failed_before} of them failed (--retry-failed retries them)")
    out.print(f"{options.experiment}: {', '.join(parts)}, in {duration(collected.seconds)}.", soft_wrap=True)
    if collected.outages:
        times = "once" if collected.outages == 1 else f"{collected.outages} times"
        out.print(f"MLflow was unreachable {times}; nothing that was generated meanwhile is lost.")
    if collected.superseded:
        out.print(
            f"{collected.superseded} of them were also generated elsewhere at the same time; the older ones count, the "
            "later ones are tagged tipbench.superseded.",
            soft_wrap=True,
        )
    if collected.undelivered:
        out.print(
            f"MLflow does not answer: {counted(collected.undelivered, 'cell')} of these are only stored on this "
            f"machine so far.\nNext: 'tipbench sync', or the same command again, delivers them once MLflow is back.",
            soft_wrap=True,
        )
    else:
        out.print(f"Look at the runs: {ui_hint(address)}", soft_wrap=True)
    if collected.failed_now:
        out.print(
            f"{collected.failed_now} cells FAILED; they are stored with their reasons, and --retry-failed "
            "retries them. The first ones:",
            soft_wrap=True,
        )
        for failure in collected.first_failures:
            out.print(f"  {printable(failure.cell.label)}: {printable(failure.reason, 200)}", soft_wrap=True)
