"""The `tipbench` command. Subcommands are imported only when they are used: help must be instant."""

import atexit
import gc
import importlib
import os
import sys
from contextlib import suppress
from itertools import pairwise

import click

from tipbench.cli.interrupts import STATUS, handle_interrupts
from tipbench.cli.lazy import load_package_command, package_commands
from tipbench.core.version import __version__

# name → (module, one line of help)
COMMANDS = {
    "demo": ("demo", "Try the whole path once: a real model, a leaderboard, in a few minutes."),
    "collect": ("collect", "Generate candidates for every (model × prompt × scenario): phase A."),
    "judge": ("judge", "Have candidates judged blind: export, apply, or run a judge; phase B."),
    "compare": ("compare", "See which model and prompt is best: the leaderboard; phase C."),
    "run": ("run", "All three phases in one go."),
    "decide": ("decide", "Decide between rows with the fewest judgements, in rounds."),
    "publish": ("publish", "Show an experiment on MLflow's pages: prompts, traces, dataset and assessments."),
    "serve": ("serve", "Start the admin server: run, judge and compare in a browser or over an API."),
    "mcp": ("mcp", "Let an agent judge and work with the bench: an MCP server on standard input and output."),
    "recommend": ("recommend.command", "Choose which tip a user sees now: the recommender, its policies and rewards."),
    "sim": ("sim.command", "Try a policy on simulated users, and test whether it may go live."),
    "sync": ("sync", "Deliver what was generated while MLflow was unreachable."),
    "experiments": ("experiments", "List, show, delete and restore experiments."),
    "suite": ("suite", "Check a suite of your own, start a new one, register it, propose anchors for it."),
    "config": ("config", "Show which options and settings are in force, and where each comes from."),
    "doctor": ("doctor", "Check what is reachable, which models fit, and what to install."),
    "backup": ("backup", "Copy all that tipbench stores on this machine to one file, while it runs."),
    "restore": ("restore", "Put a backup in place of what is gone."),
    "prune": ("prune", "Remove old decision log lines, shadow signals and job logs."),
    "pull": ("pull", "Install weights for the embedded engine."),
}


class LazyGroup(click.Group):
    """A group that lists its commands by name and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return [*COMMANDS, *package_commands()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return load_package_command(cmd_name)
        command: click.Command = importlib.import_module(f"tipbench.cli.{COMMANDS[cmd_name][0]}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([*((name, text) for name, (_, text) in COMMANDS.items()), *package_commands().items()])


@click.command(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Examples:\n\n\b\n  tipbench demo\n"
    "  tipbench collect --models qwen2.5:0.5b,gemma3:1b --experiment tip-bench-first\n"
    "  tipbench judge --experiment tip-bench-first --export judge.json\n"
    "  tipbench judge --experiment tip-bench-first --apply judge.json\n"
    "  tipbench compare --experiment tip-bench-first\n\n'tipbench COMMAND --help' explains a command.",
)
@click.version_option(__version__, prog_name="tipbench")
def cli() -> None:
    """Which small local model, with which prompt, writes the best short texts?

    tipbench collects candidates over a grid of models, prompts and fixed scenarios, has them judged blind
    against a rubric, and compares. Every result is an MLflow run.
    """


def main() -> None:
    """Run the command line. Exit status: 0 done, 1 done with failed cells, 2 refused, 130 interrupted."""
    ending = _Ending()
    atexit.register(ending)  # the first to be registered is the last to run
    gc.set_threshold(20_000)  # with 700, searching tens of thousands of records for garbage takes a tenth of the time
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's threads cost more than they save on a few numbers
    _open_closed_streams()
    handle_interrupts()
    try:
        status = run(sys.argv[1:])
    except KeyboardInterrupt:  # raised outside of click, which translates its own
        status = STATUS
    if status == STATUS:  # clean-up is done; don't wait for threads that are blocked on the network
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)
    ending.status = status
    sys.exit(status)


_NOT_FLUSHED = 120  # Python's own exit status for output that could not be written


class _Ending:
    """Ends the process after all threads and later exit handlers, so that Python does not take objects apart.

    That would take 30 ms after a collection of 960 cells.
    """

    status: int | None = None  # None: main has not come to its end

    def __call__(self) -> None:
        if self.status is not None:
            try:
                sys.stdout.flush()
                sys.stderr.flush()
            except (OSError, ValueError):  # a full disk, or a stream that somebody closed
                self.status = self.status or _NOT_FLUSHED
            os._exit(self.status)


def _open_closed_streams() -> None:
    """Open /dev/null for closed standard streams (`>&-`): else output would go to the next file that is opened."""
    for number, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8"))


def run(arguments: list[str]) -> int:
    from tipbench.core.errors import TipbenchError

    try:
        if arguments and not {"-h", "--help", "--version"}.intersection(arguments):
            _restrict_home()
            _start_rendering(arguments)
        result = cli.main(args=arguments, prog_name="tipbench", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.ClickException as error:
        error.show()
        return 2
    except TipbenchError as error:
        from tipbench.core.untrusted import printable

        click.echo(click.style("Error: ", fg="red", bold=True) + printable(str(error)), err=True)
        return 2
    except click.Abort as abort:  # click's translation of Ctrl-C, and of end of input at a prompt
        if isinstance(abort.__cause__, KeyboardInterrupt):
            click.echo("Interrupted. What was stored so far remains; run the same command again to continue.", err=True)
            return STATUS
        click.echo("No answer was given, so nothing was changed.", err=True)
        return 2
    except BrokenPipeError:  # the reader closed the pipe, as in `tipbench compare | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # such as a folder that can't be written, or a full disk
        where = f": {error.filename}" if error.filename else ""
        click.echo(f"Error: {error.strerror or error}{where}", err=True)
        return 2


def _restrict_home() -> None:
    from tipbench.core.paths import restrict_home
    from tipbench.core.settings import Settings

    sentence = restrict_home(Settings().home)
    if sentence:
        click.echo(sentence, err=True)


def _start_rendering(arguments: list[str]) -> None:
    """Start the process that renders the templates of a suite's folder, so that it is ready when all is imported."""
    if any(os.sep in suite for flag, suite in pairwise(arguments) if flag == "--suite"):
        from tipbench.bench.suites.rendering import start_rendering

        start_rendering()


if __name__ == "__main__":
    main()
