"""The leaderboard's answer in the experiment's description, for readers of MLflow's pages."""

import logging

from tipbench.bench.compare.answer import NOTHING_JUDGED, judge_next
from tipbench.bench.compare.leaderboard import Leaderboard
from tipbench.bench.compare.messages import as_description, described
from tipbench.bench.compare.snapshot import Snapshot
from tipbench.bench.records import NextStep, experiment_command
from tipbench.bench.tracking.descriptions import DESCRIPTION, summary_of, with_summary
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import TipbenchError
from tipbench.core.identity import text_digest

_AS_OF = "As of "
_log = logging.getLogger(__name__)


def describe_experiment(store: RunStore, snapshot: Snapshot, board: Leaderboard, made_at: str) -> None:
    """Write the leaderboard's answer to the experiment's description in MLflow, if it says something new.

    It is for readers of MLflow's pages only: if the store is busy, out of reach or read-only, the description stays as
    it is. The answer by another rubric than the experiment's own is not written.
    """
    if snapshot.rubric is None or text_digest(snapshot.rubric.text) != board.rubric_digest:
        return
    _describe(store, snapshot.experiment, as_description(board), made_at)


def describe_unjudged(store: RunStore, experiment: Experiment, pending: int, made_at: str) -> None:
    """Write the same for an experiment in which nothing is judged; it takes no snapshot to say so."""
    _describe(store, experiment, described(NOTHING_JUDGED, judge_next(experiment.name, pending)), made_at)


def describe_news(store: RunStore, experiment: Experiment, news: str, made_at: str) -> None:
    """Say that there are results which nobody has compared yet, instead of an answer that they made an old one."""
    step = NextStep("see what they say", experiment_command(experiment.name, "compare"))
    _describe(store, experiment, described(news, step), made_at)


def _describe(store: RunStore, known: Experiment, answer: str, made_at: str) -> None:
    try:
        if _says(known, answer):
            return
        experiment = store.find_experiment(known.name)  # somebody may have edited it meanwhile
        if experiment is None or experiment.id != known.id or _says(experiment, answer):
            return
        description = with_summary(experiment.tags.get(DESCRIPTION), f"{answer}\n\n{_AS_OF}{made_at}")
        if description is not None:
            store.describe_experiment(experiment, description)
    except TipbenchError as error:
        _log.info("The description of experiment '%s' stays as it is: %s", known.name, error)


def _says(experiment: Experiment, answer: str) -> bool:
    """Return whether the experiment's description says the same, whenever that was written."""
    summary = summary_of(experiment.tags.get(DESCRIPTION, ""))
    return summary is not None and summary.rpartition(f"\n\n{_AS_OF}")[0] == answer
