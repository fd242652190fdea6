"""Opens what the stages need: the store that the options name, the clock and fresh identifiers."""

import shlex
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from tipbench.bench.compare.load_snapshot import take_look
from tipbench.bench.compare.snapshot import Look, rubric_of
from tipbench.bench.judge.settle import finish_applying
from tipbench.bench.options import Options
from tipbench.bench.suites.rubric import Rubric
from tipbench.bench.tracking.address import open_store, remember
from tipbench.bench.tracking.embedded import SCHEME
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.workplace import Workplace
from tipbench.core.paths import journal_folder, snapshot_folder
from tipbench.core.settings import Settings
from tipbench.core.untrusted import without_credentials

_PIPED_WIDTH = 160  # where there is no terminal to fit into, as in a file or a log

out = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else _PIPED_WIDTH)
err = Console(stderr=True, highlight=False, markup=False)


@contextmanager
def workplace(mlflow_url: str | None, experiment: str | None = None, create: bool = False) -> Iterator[Workplace]:
    """The store and what goes with it; says where results go when the user did not.

    Only whoever has something to write makes a database that isn't there.
    """
    settings = Settings()
    opened = open_store(mlflow_url, settings, experiment, create)
    try:
        if opened.notice:
            note(opened.notice)
        yield Workplace(opened.store, time.time, lambda: uuid.uuid4().hex[:16], journal_folder(settings.home))
        if opened.store.files_refused:
            note(f"Texts were stored as tags, because files were refused: {opened.store.files_refused}")
    finally:
        opened.store.close()


def note(text: str) -> None:
    """One line for the user, apart from what may be piped on."""
    err.print(text, style="dim", soft_wrap=True)


def remember_place(work: Workplace, experiment: str, suite: Path) -> None:
    remember(Settings(), experiment, work.store.address, str(suite))


def look_at(work: Workplace, experiment: Experiment, refresh: bool = False) -> Look:
    """What is in an experiment that was found just now; where nothing has changed since the last time, that is kept."""
    return take_look(work.store, experiment, snapshot_folder(Settings().home), refresh, finish=finish_applying)


def rubric_for(look: Look, suite: str | None) -> Rubric:
    """The rubric of the suite that was named, else the one kept with the experiment."""
    if not suite:
        return rubric_of(look)
    from tipbench.bench.suites.load import load_suite  # brings the templates

    return load_suite(suite).rubric


def hint(command: str, options: Options, *words: str) -> str:
    """A command to type next; it names the store where the user had to."""
    named = ("--mlflow-url", without_credentials(options.mlflow_url)) if options.mlflow_url else ()
    return shlex.join(("tipbench", command, "--experiment", options.experiment, *named, *words))


def ui_hint(work: Workplace) -> str:
    """How to look at the results in MLflow's own pages."""
    address = work.store.address
    if address.startswith(SCHEME):
        return f"mlflow ui --backend-store-uri '{address}'"
    return address
