"""Opens what the stages need: the store that the options name, the clock and fresh identifiers."""

import os
import shlex
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from tipbench.errors import SuiteError
from tipbench.options import Options
from tipbench.pipeline import Workplace, current_rubric
from tipbench.records import GoldItem
from tipbench.settings import Settings
from tipbench.suites.anchors import read_private_anchors
from tipbench.suites.load import built_in_suites, load_suite
from tipbench.suites.rubric import Rubric
from tipbench.suites.suite import Suite
from tipbench.tracking.address import open_store, remember, remembered_suite
from tipbench.tracking.embedded import SCHEME
from tipbench.tracking.interface import Experiment
from tipbench.turns import lock_path, turn
from tipbench.untrusted import without_credentials

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
        yield Workplace(opened.store, time.time, lambda: uuid.uuid4().hex[:16], settings.home / "journal")
        if opened.store.files_refused:
            note(f"Texts were stored as tags, because files were refused: {opened.store.files_refused}")
    finally:
        opened.store.close()


def note(text: str) -> None:
    """One line for the user, apart from what may be piped on."""
    err.print(text, style="dim", soft_wrap=True)


def remember_place(work: Workplace, experiment: str, suite: Suite) -> None:
    remember(Settings(), experiment, work.store.address, str(suite.folder))


def chosen_rubric(work: Workplace, experiment: Experiment, suite: str | None) -> Rubric:
    """The rubric of the suite that was named, else the one kept with the experiment."""
    return load_suite(suite).rubric if suite else current_rubric(work.store, experiment)


def gold_items(experiment: Experiment, rubric: Rubric, suite: str | None) -> tuple[GoldItem, ...]:
    """The anchors that fit the rubric: the suite's, and a team's own."""
    settings = Settings()
    own = settings.get("TIPBENCH_ANCHORS")
    name = experiment.tags.get("tipbench.suite", "")
    remembered = remembered_suite(settings, experiment.name)
    named = suite or (remembered if remembered and Path(remembered).is_dir() else name)
    if not suite and named not in built_in_suites() and not Path(named).is_dir():
        note(f"The suite '{name}' is not on this machine, so there are no anchors; --suite FOLDER says where it is.")
        return ()
    try:
        loaded = load_suite(named)
    except SuiteError as error:
        note(f"The suite '{name}' can't be read now, so its anchors are left out: {error.headline} {error.problems[0]}")
        return ()
    if loaded.rubric.digest != rubric.digest:
        note(f"The anchors of suite '{loaded.name}' are for another rubric than the experiment's, and are left out.")
        return ()
    scenarios = {scenario.id: scenario for scenario in loaded.scenarios}
    private = read_private_anchors(Path(os.path.expanduser(own)), scenarios, rubric) if own else ()  # noqa: PTH111
    return (*private, *loaded.anchors)


@contextmanager
def judging_alone(work: Workplace, experiment: str) -> Iterator[None]:
    """Two that apply scores to one experiment at once do it one after the other."""
    path = lock_path(Settings().home, "judge", work.store.address, experiment)
    with turn(path, f"another process is writing scores into '{experiment}'", wait=True, say=note):
        yield


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
