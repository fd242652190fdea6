"""`tipbench collect`: phase A."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from tipbench.bench.collect.locks import collecting_alone
from tipbench.bench.collect.plan import Plan
from tipbench.bench.engines.catalog import Engines, open_engines
from tipbench.bench.engines.interface import Engine
from tipbench.bench.options import Options
from tipbench.bench.pipeline import (
    Collected,
    Watcher,
    admit_request,
    collect_cells,
    deliver_earlier,
    plan_collection,
    start_over,
)
from tipbench.bench.records import ModelInfo
from tipbench.bench.suites.load import load_suite
from tipbench.bench.suites.suite import Suite
from tipbench.bench.workplace import Workplace
from tipbench.cli.flags import config_flag, fresh_flag, gather, option_flags, retry_flag, wait_flag
from tipbench.cli.progress import Watchers, shown_progress
from tipbench.cli.workplace import err, hint, note, out, remember_place, ui_hint, workplace
from tipbench.core.errors import EngineError, NothingStored
from tipbench.core.settings import Settings
from tipbench.core.text import duration
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
@click.option("--dry-run", is_flag=True, help="Show cells, models with their sizes and the time, generate nothing.")
@retry_flag
@fresh_flag
@wait_flag
def command(config: Path | None, dry_run: bool, retry_failed: bool, fresh: bool, no_wait: bool, **given: Any) -> int:
    """Phase A: generate candidates for every (model × prompt × scenario).

    Every cell becomes an MLflow run with the tag judge_pending=true. Starting the same command again does only
    what is missing.
    """
    options = gather(given, config)
    suite = load_suite(options.suite)
    options = suite.fit(options)
    with open_engines(options, Settings()) as engines:
        models = admit_request(options, suite, engines.of, Settings().is_true("TIPBENCH_MEMORY_CHECK"))
        if dry_run:
            show_plan(options, suite, _dry_plan(options, suite, models, retry_failed))
            return 0
        with (
            workplace(options.mlflow_url, options.experiment, create=True) as work,
            sole_use_of(engines, options, work, wait=not no_wait),
        ):
            deliver_before(work, options)
            if fresh:
                set_aside(options, suite, models, work)
            plan = plan_collection(options, suite, models, work.store, retry_failed)
            collected = run_collection(options, suite, plan, engines.of, work)
            if collected.candidates or collected.stored_before:
                out.print(f"Next: {hint('judge', options, '--export', 'judge.json')}", soft_wrap=True)
    return 0 if collected.is_complete else 1


def _dry_plan(options: Options, suite: Suite, models: Sequence[ModelInfo], retry_failed: bool) -> Plan:
    """The plan against what is stored, without making a database that isn't there."""
    try:
        with workplace(options.mlflow_url, options.experiment) as work:
            return plan_collection(options, suite, models, work.store, retry_failed)
    except NothingStored:
        return plan_collection(options, suite, models, None)


def run_collection(
    options: Options,
    suite: Suite,
    plan: Plan,
    engine_of: Callable[[str], Engine],
    work: Workplace,
    *others: Watcher,
) -> Collected:
    """Collects with progress, which others may watch too, and says what came of it."""
    remember_place(work, options.experiment, suite.folder)
    with shown_progress(err) as shown:
        started = work.clock()
        try:
            collected = collect_cells(options, suite, plan, engine_of, work, Watchers(shown, *others))
        except EngineError:
            note("What was done is stored; the same command goes on from there.")
            raise
    show_summary(options, collected, work.clock() - started)
    out.print(f"Look at the runs: {ui_hint(work)}", soft_wrap=True)
    return collected


def sole_use_of(
    engines: Engines, options: Options, work: Workplace, wait: bool, say: Callable[[str], None] = note
) -> AbstractContextManager[None]:
    """Alone in the experiment, so that no cell is generated twice, and at all endpoints that the models are on."""
    return collecting_alone(engines, options, work.store.address, Settings().home, wait, say)


def set_aside(options: Options, suite: Suite, models: Sequence[ModelInfo], work: Workplace) -> None:
    count = start_over(options, suite, models, work)
    note(f"{count} stored cells are set aside: they stay in MLflow, tagged tipbench.superseded.")


def deliver_before(work: Workplace, options: Options) -> None:
    """Brings home what an earlier collection left in its journal, and says so."""
    delivered = deliver_earlier(work, options.experiment)
    if delivered.cells:
        note(f"{delivered.cells} cells that an earlier run generated and could not store are in MLflow now.")


def show_plan(options: Options, suite: Suite, plan: Plan) -> None:
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


def show_summary(options: Options, collected: Collected, seconds: float) -> None:
    cells = "cell" if collected.answered == 1 else "cells"
    parts = [f"{collected.answered} {cells} answered with {collected.candidates} candidates"]
    if collected.empty:
        parts.append(f"{collected.empty} of them without a usable one")
    if collected.stored_before:
        parts.append(f"{collected.stored_before} stored before")
    if collected.failed_before:
        parts.append(f"{collected.failed_before} of them failed (--retry-failed tries them again)")
    out.print(f"{options.experiment}: {', '.join(parts)}, in {duration(seconds)}.", soft_wrap=True)
    if collected.outages:
        out.print(f"MLflow was away {collected.outages} times; what was generated meanwhile was kept.")
    if collected.superseded:
        out.print(
            f"{collected.superseded} of them had been generated elsewhere at the same time; the older ones count, the "
            "later ones are tagged tipbench.superseded.",
            soft_wrap=True,
        )
    if collected.undelivered:
        out.print(
            f"{collected.undelivered} cells are generated and kept, and NOT in MLflow yet, because it does not answer; "
            f"the same command, or 'tipbench sync', delivers them once it does.",
            soft_wrap=True,
        )
    if collected.failed_now:
        out.print(
            f"{collected.failed_now} cells FAILED; they are stored with their reasons, and --retry-failed tries "
            "them again. The first ones:",
            soft_wrap=True,
        )
        for failure in collected.first_failures:
            out.print(f"  {printable(failure.cell.label)}: {printable(failure.reason, 200)}", soft_wrap=True)
