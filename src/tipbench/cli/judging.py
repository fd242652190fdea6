"""What the commands that judge have in common: which rubric, which anchors, and one at a time."""

from contextlib import AbstractContextManager

from tipbench.bench.judge import gold
from tipbench.bench.judge import locks as alone
from tipbench.bench.pipeline import current_rubric
from tipbench.bench.records import GoldItem
from tipbench.bench.suites.load import load_suite
from tipbench.bench.suites.rubric import Rubric
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.workplace import Workplace
from tipbench.cli.workplace import note
from tipbench.core.settings import Settings


def chosen_rubric(work: Workplace, experiment: Experiment, suite: str | None) -> Rubric:
    """The rubric of the suite that was named, else the one kept with the experiment."""
    return load_suite(suite).rubric if suite else current_rubric(work.store, experiment)


def gold_items(experiment: Experiment, rubric: Rubric, suite: str | None) -> tuple[GoldItem, ...]:
    """The anchors that fit the rubric: the suite's, and a team's own."""
    return gold.gold_items(experiment, rubric, suite, Settings(), note)


def judging_alone(work: Workplace, experiment: str) -> AbstractContextManager[None]:
    """Two that apply scores to one experiment at once do it one after the other."""
    return alone.judging_alone(work.store.address, experiment, Settings(), note)
