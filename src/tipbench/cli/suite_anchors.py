"""`tipbench suite anchors`: propose anchors from what judges agree on, and accept those that a person has read."""

from pathlib import Path
from typing import Any

import click

from tipbench.bench.judge.proposals import Proposals
from tipbench.bench.suites.anchors import NAME, accept_anchors, entries_text, read_entries
from tipbench.bench.suites.load import load_suite
from tipbench.bench.suites.suite import Suite
from tipbench.cli.console import bench_of, note, out
from tipbench.cli.flags import gather, option_flags
from tipbench.core.files import write_user_file
from tipbench.core.settings import Settings
from tipbench.core.text import counted
from tipbench.core.untrusted import printable


@click.command(
    "anchors",
    epilog="Examples:\n\n\b\n"
    "  tipbench suite anchors --experiment commits-bench-1 --out proposed.yaml\n"
    "  tipbench suite anchors --accept proposed.yaml --suite commits",
)
@option_flags("experiment", "suite", "mlflow_url")
@click.option("--tolerance", type=int, default=0, show_default=True, help="Points that judges may be apart.")
@click.option("--out", "out_file", type=click.Path(path_type=Path), help="Write the proposals to this file.")
@click.option(
    "--accept",
    type=click.Path(path_type=Path),
    help="Add the anchors in this file, which you have read and edited, to the suite's anchors.yaml.",
)
def anchors(tolerance: int, out_file: Path | None, accept: Path | None, **given: Any) -> int:
    """Propose anchors from candidates that two judges or more agree on, for you to read, edit and accept.

    Only scores that count are used. An anchor names the judges who made it (by), and never checks them.
    """
    if accept and out_file:
        raise click.UsageError("--accept takes what --out wrote: give one of the two")
    if not (given.get("experiment") or (accept and given.get("suite"))):
        raise click.UsageError("--experiment is missing" + ("; or name the suite with --suite" if accept else ""))
    named = given.pop("suite")  # a default suite of this machine is not meant: an experiment has its own
    with bench_of(gather(given, suite=named)) as bench:
        if accept:
            suite = load_suite(bench.options.suite, Settings()) if named else bench.own_suite()
            return _accept(suite, accept)
        found = bench.propose_anchors(tolerance)
    text = _file_text(found, out_file)
    if out_file and found.entries:
        write_user_file(out_file, text)
    elif found.entries:
        out.out(text, end="", highlight=False)
    note(printable(found.says))
    if out_file and found.entries:
        out.print(f"Read and edit {out_file}, then: {_next(found.suite, out_file)}", soft_wrap=True)
    return 0 if found.entries else 1


def _accept(suite: Suite, file: Path) -> int:
    entries = read_entries(file, suite)
    added = accept_anchors(suite, entries, Settings(), note)
    total = len(suite.anchors) + len(added)
    left = f"; {len(entries) - len(added)} were in it already" if len(added) < len(entries) else ""
    out.print(
        f"{counted(len(added), 'anchor')} added to {suite.folder / NAME}{left}. Suite '{suite.name}' has {total} now.",
        soft_wrap=True,
    )
    return 0


def _file_text(found: Proposals, file: Path | None) -> str:
    """Return the proposals as a file that a person edits."""
    lines = [
        f"Proposed anchors for suite '{found.suite.name}'. {found.says}",
        "Read each one: would you defend these scores? Delete or mend those that you would not.",
        f"Then: {_next(found.suite, file or Path('FILE'))}",
    ]
    return "".join(f"# {printable(line, 1000)}\n" for line in lines) + entries_text(found.entries)


def _next(suite: Suite, file: Path) -> str:
    return f"tipbench suite anchors --accept {file} --suite {suite.folder}"
