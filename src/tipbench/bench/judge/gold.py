"""The anchors for an experiment's batches: those of its suite, and a team's own."""

import os
from collections.abc import Callable
from pathlib import Path

from tipbench.bench.records import GoldItem
from tipbench.bench.suites.anchors import read_private_anchors
from tipbench.bench.suites.load import built_in_suites, load_suite
from tipbench.bench.suites.rubric import Rubric
from tipbench.bench.tracking.address import remembered_suite
from tipbench.bench.tracking.interface import Experiment
from tipbench.core.errors import SuiteError
from tipbench.core.settings import Settings


def gold_items(
    experiment: Experiment, rubric: Rubric, suite: str | None, settings: Settings, say: Callable[[str], None]
) -> tuple[GoldItem, ...]:
    """The anchors that fit the rubric; where there are none, `say` hears why."""
    own = settings.get("TIPBENCH_ANCHORS")
    name = experiment.tags.get("tipbench.suite", "")
    remembered = remembered_suite(settings, experiment.name)
    named = suite or (remembered if remembered and Path(remembered).is_dir() else name)
    if not suite and named not in built_in_suites() and not Path(named).is_dir():
        say(f"The suite '{name}' is not on this machine, so there are no anchors; --suite FOLDER says where it is.")
        return ()
    try:
        loaded = load_suite(named)
    except SuiteError as error:
        say(f"The suite '{name}' can't be read now, so its anchors are left out: {error.headline} {error.problems[0]}")
        return ()
    if loaded.rubric.digest != rubric.digest:
        say(f"The anchors of suite '{loaded.name}' are for another rubric than the experiment's, and are left out.")
        return ()
    scenarios = {scenario.id: scenario for scenario in loaded.scenarios}
    private = read_private_anchors(Path(os.path.expanduser(own)), scenarios, rubric) if own else ()  # noqa: PTH111
    return (*private, *loaded.anchors)
