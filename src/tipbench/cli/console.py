"""Terminal output: results to stdout, notes to stderr, and hints on which command to type next."""

import shlex
import sys

from rich.console import Console

from tipbench.bench.bench import Bench
from tipbench.bench.context import Context, Observer
from tipbench.bench.options import Options
from tipbench.bench.tracking.embedded import SCHEME
from tipbench.core.settings import Settings
from tipbench.core.untrusted import printable, without_credentials

_PIPED_WIDTH = 160  # without a terminal, as in a file or a log

FITS_WIDTH = sys.stdout.isatty() or Settings().is_set("COLUMNS")  # else lines are as long as they are
out = Console(highlight=False, markup=False, width=None if FITS_WIDTH else _PIPED_WIDTH)
err = Console(stderr=True, highlight=False, markup=False)


class Notes(Observer):
    """Prints the notes of a bench."""

    def note(self, text: str) -> None:
        note(text)


def bench_of(options: Options, observer: Observer | None = None) -> Bench:
    """Return a bench with these options, whose notes go to the terminal."""
    return Bench.from_options(options, Context(observer=observer or Notes()))


def print_answer(says: str, next_step: object) -> None:
    """Print what a result means, and what to do next."""
    out.print(printable(says), style="bold", soft_wrap=not FITS_WIDTH)
    out.print(printable(f"Next: {next_step}"), soft_wrap=True)


def note(text: str) -> None:
    """Print one line for the user to stderr, separate from what may be piped."""
    err.print(text, style="dim", soft_wrap=True)


def hint(command: str, options: Options, *words: str) -> str:
    """Return a command to type next; it names the store if the user did."""
    named = ("--mlflow-url", without_credentials(options.mlflow_url)) if options.mlflow_url else ()
    return shlex.join(("tipbench", command, "--experiment", options.experiment, *named, *words))


def ui_hint(address: str) -> str:
    """Return how to see the results in MLflow's own pages: a command or an address."""
    if address.startswith(SCHEME):
        return f"mlflow ui --backend-store-uri '{address}'"
    return address
