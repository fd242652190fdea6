"""What the commands that judge have in common: which rubric, which anchors, and one at a time."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tipbench.cli.workplace import note
from tipbench.errors import SuiteError
from tipbench.pipeline import current_rubric
from tipbench.records import GoldItem
from tipbench.settings import Settings
from tipbench.suites.anchors import read_private_anchors
from tipbench.suites.load import built_in_suites, load_suite
from tipbench.suites.rubric import Rubric
from tipbench.tracking.address import remembered_suite
from tipbench.tracking.interface import Experiment
from tipbench.turns import lock_path, turn
from tipbench.workplace import Workplace


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
