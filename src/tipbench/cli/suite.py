"""`tipbench suite`: check one, start one, bring scenarios into one, register it, propose anchors for it."""

from pathlib import Path

import click

from tipbench.bench.suites.anchors import without_anchors
from tipbench.bench.suites.load import load_suite, write_starter
from tipbench.cli.console import out
from tipbench.cli.suite_anchors import anchors
from tipbench.cli.suite_registry import list_, register, unregister
from tipbench.core.settings import Settings
from tipbench.core.text import counted
from tipbench.core.untrusted import printable

_SHOWN = 5  # ids of imported scenarios that are listed


@click.group(
    epilog="Examples:\n\n\b\n"
    "  tipbench suite check tip\n  tipbench suite new my-suite\n  tipbench suite import ./my-suite cases.csv\n"
    "  tipbench suite check ./my-suite\n  tipbench suite register ./my-suite"
)
def command() -> None:
    """A suite is a folder of data: scenarios, prompts, a rubric, an output contract."""


@command.command("check")
@click.argument("path")
def check(path: str) -> int:
    """Check a suite and list its problems by file and line; PATH is a folder or a suite's name."""
    suite = load_suite(path)
    rubric = suite.rubric
    lowest, highest = rubric.lowest()["composite"], rubric.highest_composite()
    out.print(f"Suite '{suite.name}' in {suite.folder} is valid: {suite.title}", soft_wrap=True)
    out.print(f"  scenarios  {', '.join(scenario.id for scenario in suite.scenarios)}", soft_wrap=True)
    out.print(f"  prompts    {', '.join(suite.prompts)}", soft_wrap=True)
    out.print(
        f"  rubric     {rubric.name}: {', '.join(rubric.criteria) or 'code alone scores, no judge is needed'}; "
        f"flags: {', '.join(rubric.flags) or 'none'}; "
        f"composite from {lowest:g} to {highest:g}",
        soft_wrap=True,
    )
    out.print(f"  output     {suite.contract.format}, at most {suite.contract.max_tokens} tokens")
    out.print(f"  anchors    {len(suite.anchors)}")
    if warning := without_anchors(suite, Settings()):
        out.print(warning, soft_wrap=True)
    return 0


@command.command("new")
@click.argument("name")
def new(name: str) -> int:
    """Create a small working suite in a new folder NAME, as a start for your own."""
    folder = write_starter(Path(name))
    out.print(
        f"{folder} is a small suite that works. Change its files, then:\n"
        f"  tipbench suite check {folder}\n"
        f"  tipbench collect --suite {folder} --prompts v1 --models embedded/smollm2:135m --n-tips 1\n"
        f"{without_anchors(load_suite(str(folder.absolute())), Settings())}",
        soft_wrap=True,
    )
    return 0


@command.command("import")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def import_file(folder: Path, file: Path) -> int:
    """Add the scenarios of a .csv or .jsonl FILE to the suite in FOLDER; all of them, or none.

    Columns: id, a column for each factor of the suite, checks (JSON); every other column becomes a detail, which
    templates use by its name.
    """
    from tipbench.bench.suites.importing import import_scenarios

    found = import_scenarios(folder, file)
    taken = [printable(name) for name in found.taken]
    first = f": {', '.join(taken[:_SHOWN])}{', …' if len(taken) > _SHOWN else ''}" if taken else ""
    out.print(f"{counted(len(taken), 'scenario')} taken from {file}{first}", soft_wrap=True)
    if found.known:
        out.print(f"  already there  {counted(len(found.known), 'scenario')} with the same content", soft_wrap=True)
    out.print(f"  factors        {', '.join(found.factors) or 'none'}", soft_wrap=True)
    out.print(f"  details        {', '.join(found.details) or 'none'}", soft_wrap=True)
    out.print(f"  checks         on {counted(found.checks, 'scenario')}")
    out.print(f"The suite has {counted(found.scenarios, 'scenario')} now and is valid.")
    return 0


for subcommand in (register, unregister, list_, anchors):
    command.add_command(subcommand)
