"""The leaderboard's answer in the experiment's description, for readers of MLflow's pages."""

import logging

from tipbench.bench.compare.leaderboard import Leaderboard
from tipbench.bench.compare.messages import as_description
from tipbench.bench.compare.snapshot import Snapshot
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
    answer = as_description(board)
    try:
        if _says(snapshot.experiment, answer):
            return
        experiment = store.find_experiment(snapshot.experiment.name)  # somebody may have edited it meanwhile
        if experiment is None or experiment.id != snapshot.experiment.id or _says(experiment, answer):
            return
        description = with_summary(experiment.tags.get(DESCRIPTION), f"{answer}\n\n{_AS_OF}{made_at}")
        if description is not None:
            store.describe_experiment(experiment, description)
    except TipbenchError as error:
        _log.info("The description of experiment '%s' stays as it is: %s", snapshot.experiment.name, error)


def _says(experiment: Experiment, answer: str) -> bool:
    """Return whether the experiment's description says the same, whenever that was written."""
    summary = summary_of(experiment.tags.get(DESCRIPTION, ""))
    return summary is not None and summary.rpartition(f"\n\n{_AS_OF}")[0] == answer
