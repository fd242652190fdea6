"""`tipbench decide`: from nothing to a decision between rows, in rounds."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tipbench.cli.console import bench_of, hint, note, out, print_answer
from tipbench.cli.flags import config_flag, gather, option_flags
from tipbench.cli.progress import CollectingObserver
from tipbench.core.errors import InvalidInput, NothingPending
from tipbench.core.text import capital, counted

if TYPE_CHECKING:
    from tipbench.bench.bench import Bench
    from tipbench.bench.decide.rounds import Round
    from tipbench.bench.decide.verdict import Verdict

_FILE = click.Path(path_type=Path, dir_okay=False)
_KEYS = (
    "models", "prompts", "experiment", "n_tips", "diversity", "temperature", "seed", "max_tokens", "max_model_b",
    "unload", "concurrency", "suite", "ollama_url", "mlflow_url",
)  # fmt: skip


@click.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench decide --models qwen2.5:0.5b,gemma3:1b --prompts v1,v3-few-shot --experiment tip-pool-first\n"
    "  tipbench decide --models qwen2.5:0.5b,gemma3:1b --judge command --good-enough 0 --claim new\n"
    "  tipbench decide --experiment tip-pool-first\n"
    "  tipbench decide --replay scores.csv --seed 1 --format json\n\n"
    "Called again with the experiment alone, it goes on where it was: it applies the filled-in file and writes the "
    "next one. Other judges get their items by 'tipbench judge --export', or on the judging page. A file for --replay "
    "has the columns row, item, score and, optionally, cluster.\n\n"
    "Exit status: 0 decided, 1 open, 2 refused."
)
@option_flags(*_KEYS, suite="tip-pool", experiment="tip-pool-auto")
@config_flag
@click.option(
    "--judge", metavar="NAME", help="An automatic judge: agent, command, webhook or model.  [default: a file for you]"
)
@click.option("--export", type=_FILE, metavar="FILE", help="The file for the judge.  [default: EXPERIMENT-decide.json]")
@click.option(
    "--claim",
    type=click.Choice(["pool", "new"]),
    help="Whose answers in this pool are the best, or who is the best on new scenarios.  [default: pool]",
)
@click.option(
    "--good-enough",
    type=click.FloatRange(min=0),
    metavar="X",
    help="Stop when picking the leader is expected to lose at most X points; 0: go on to proof.  [default: 0.15]",
)
@click.option("--budget", type=click.IntRange(min=1), metavar="N", help="Stop after N judgements, anchors included.")
@click.option(
    "--minutes", type=click.FloatRange(min=1), metavar="M", help="Stop after M minutes of judging, at 45 s a judgement."
)
@click.option("--replay", "replayed", type=_FILE, metavar="FILE", help="Decide from this CSV file of scores instead.")
@click.option("--scale", metavar="LO,HI", help="For --replay: lowest and highest score.  [default: those in the file]")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", help="[default: table]")
def command(
    judge: str | None,
    export: Path | None,
    replayed: Path | None,
    scale: str | None,
    form: str,
    config: Path | None,
    minutes: float | None,
    budget: int | None,
    **given: Any,
) -> int:
    """Decide which model with which prompt is the best, with the fewest judgements.

    Every row that is left is judged on the same scenarios, in rounds. Rows that are shown not to be the best are out:
    they are neither generated nor judged any more. The claim holds however often you look.
    """
    rules = {"claim": given.pop("claim"), "good_enough": given.pop("good_enough")}
    budget = _budget(budget, minutes)
    if replayed:
        from tipbench.bench.decide.replay import replay

        asked = {key: value for key, value in rules.items() if value is not None}
        verdict = replay(replayed, seed=given["seed"], scale=_scale(scale), budget=budget, **asked)
        _show(verdict, verdict.as_data(), form)
        return 0 if verdict.is_decided else 1
    if scale:
        raise click.UsageError("--scale goes with --replay")
    options = gather(given, config)
    judge = judge or options.judge
    observer = CollectingObserver()
    with bench_of(options, observer) as bench:
        bench.start_decision(budget, **rules)
        file = export or Path(f"{bench.options.experiment.replace('/', '-')}-decide.json")
        if judge is None:
            _apply(bench, file)
        with observer.displayed():
            found = bench.decide(judge)
        waits = _export(bench, found, file) if judge is None and found.is_open else ""
    _show(found.verdict, found.as_data(), form)
    if waits:
        (note if form == "json" else out.print)(waits)
    return 0 if found.verdict.is_decided else 1


def _budget(budget: int | None, minutes: float | None) -> int | None:
    from tipbench.bench.records import SECONDS_A_JUDGEMENT

    by_time = None if minutes is None else int(minutes * 60 / SECONDS_A_JUDGEMENT)
    return min((one for one in (budget, by_time) if one is not None), default=None)


def _scale(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise click.UsageError(
            f"--scale {text!r} must be two numbers with a comma between them, such as 2,17"
        ) from None
    if not low < high:
        raise click.UsageError(f"--scale {text!r} must give the lower number first")
    return low, high


def _apply(bench: "Bench", file: Path) -> None:
    """Apply the judge's file if it is there and filled in, and move it out of the way of the next one."""
    if not file.exists():
        return
    from tipbench.bench.judge.verify import read_judge_file

    items = read_judge_file(file).get("items", [])
    left = sum(any(score is None for score in item.get("scores", {}).values()) for item in items)
    if left:
        raise InvalidInput(
            f"{file} is not filled in: {left} of {len(items)} items have no scores yet; score them first"
        )
    applied = bench.apply(file)
    done = file.with_name(f"{file.stem}-{applied.batch[:8]}-applied.json")
    file.replace(done)
    note(f"{applied.in_short}; the file is now {done.name}.")


def _export(bench: "Bench", found: "Round", file: Path) -> str:
    """Write the next batch to a file for a person, and return what to do with it."""
    from tipbench.bench.judge.judges.catalog import PERSON
    from tipbench.bench.judge.sample import seconds_for
    from tipbench.bench.tracking.batches import batch_file
    from tipbench.core.files import write_user_file
    from tipbench.core.text import duration
    from tipbench.core.untrusted import json_text

    own = [one.run for one in found.open_batches if one.batch.judge == PERSON]
    if own:  # its file is gone, or was never written
        items = batch_file(bench.store, own[0])
        write_user_file(file, json_text(items))
        count = len(items["items"])
    else:
        try:
            count = bench.export(file).items
        except NothingPending as nothing:
            return f"{capital(nothing)}."
    return (
        f"{count} items wait in {file}, about {duration(seconds_for(count))}. Fill in 'scores', then "
        f"run the same command again: {hint('decide', bench.options)}"
    )


def _show(verdict: "Verdict", data: Mapping[str, Any], form: str) -> None:
    from tipbench.bench.decide.verdict import table
    from tipbench.cli.leaderboard import empty_table
    from tipbench.core.untrusted import json_text, printable

    if form == "json":
        click.echo(json_text(dict(data)))
        return
    print_answer(verdict.says, verdict.next)
    shown = empty_table("")
    for name, right in (("row", False), ("mean", True), ("judged", True), ("state", False)):
        shown.add_column(name, justify="right" if right else "left", overflow="fold")
    for line in table(verdict):
        shown.add_row(*map(printable, line))
    out.print(shown)
    state = verdict.state
    counts = f"{counted(state.judgements, 'judgement')} on {counted(state.items, 'item')}"
    beside = f"; {data['spent']:,} scored by judges, anchors and repeats included" if "spent" in data else ""
    out.print(f"{counts}{beside}. {verdict.other_account}", style="dim")
