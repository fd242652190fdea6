"""What the commands that judge have in common: which rubric, which anchors, and one at a time."""

from contextlib import AbstractContextManager

from tipbench.cli.workplace import note
from tipbench.core.settings import Settings
from tipbench.judge import alone, gold
from tipbench.pipeline import current_rubric
from tipbench.records import GoldItem
from tipbench.suites.load import load_suite
from tipbench.suites.rubric import Rubric
from tipbench.tracking.interface import Experiment
from tipbench.workplace import Workplace


def chosen_rubric(work: Workplace, experiment: Experiment, suite: str | None) -> Rubric:
    """The rubric of the suite that was named, else the one kept with the experiment."""
    return load_suite(suite).rubric if suite else current_rubric(work.store, experiment)


def gold_items(experiment: Experiment, rubric: Rubric, suite: str | None) -> tuple[GoldItem, ...]:
    """The anchors that fit the rubric: the suite's, and a team's own."""
    return gold.gold_items(experiment, rubric, suite, Settings(), note)


def judging_alone(work: Workplace, experiment: str) -> AbstractContextManager[None]:
    """Two that apply scores to one experiment at once do it one after the other."""
    return alone.judging_alone(work.store.address, experiment, Settings(), note)
