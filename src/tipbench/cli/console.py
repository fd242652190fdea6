"""The terminal: what is printed, what is noted beside it, and which command to type next."""

import shlex
import sys

from rich.console import Console

from tipbench.bench.bench import Bench
from tipbench.bench.context import Context, Observer
from tipbench.bench.options import Options
from tipbench.bench.tracking.embedded import SCHEME
from tipbench.core.untrusted import without_credentials

_PIPED_WIDTH = 160  # where there is no terminal to fit into, as in a file or a log

out = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else _PIPED_WIDTH)
err = Console(stderr=True, highlight=False, markup=False)


class Notes(Observer):
    """Prints what a bench notes."""

    def note(self, text: str) -> None:
        note(text)


def bench_of(options: Options, observer: Observer | None = None) -> Bench:
    """The bench of these options, whose notes go to the terminal."""
    return Bench.of(options, Context(observer=observer or Notes()))


def note(text: str) -> None:
    """One line for the user, apart from what may be piped on."""
    err.print(text, style="dim", soft_wrap=True)


def hint(command: str, options: Options, *words: str) -> str:
    """A command to type next; it names the store where the user had to."""
    named = ("--mlflow-url", without_credentials(options.mlflow_url)) if options.mlflow_url else ()
    return shlex.join(("tipbench", command, "--experiment", options.experiment, *named, *words))


def ui_hint(address: str) -> str:
    """How to look at the results in MLflow's own pages."""
    if address.startswith(SCHEME):
        return f"mlflow ui --backend-store-uri '{address}'"
    return address
