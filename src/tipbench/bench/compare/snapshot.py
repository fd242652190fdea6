"""A look at an experiment: everything that comparing reads."""

from collections.abc import Mapping
from dataclasses import dataclass

from tipbench.bench.records import StoredCell
from tipbench.bench.suites.read_rubric import parse_rubric
from tipbench.bench.suites.rubric import Rubric
from tipbench.bench.tracking.batches import BatchSummary
from tipbench.bench.tracking.interface import Experiment
from tipbench.core.errors import InvalidInput, StoredDataDamaged


@dataclass(frozen=True)
class RubricSeen:
    """The rubric that the experiment is judged by, as it is kept with a run."""

    run_id: str
    text: str
    problem: str = ""  # why the text could not be read


@dataclass(frozen=True)
class Snapshot:
    """The same whatever order MLflow returned runs in. It holds no text that a model wrote, and no secret."""

    experiment: Experiment
    cells: tuple[StoredCell, ...]  # each once, oldest first
    batches: tuple[BatchSummary, ...]  # those that hold scores, in the order of their applying
    rubric: RubricSeen | None  # None: there are no cells yet

    def kappas(self, rubric_digest: str) -> dict[str, Mapping[str, float | None]]:
        """Each judge's κ with the anchors in its latest batch by this rubric; empty where it could not be told."""
        by_rubric = [batch for batch in self.batches if batch.rubric_digest == rubric_digest]
        in_order = sorted(by_rubric, key=lambda batch: batch.counted)  # those that count come last and stay
        return {batch.judge: batch.kappas for batch in in_order}


def rubric_of(snapshot: Snapshot) -> Rubric:
    """The rubric that the experiment is judged by."""
    if snapshot.rubric is None:
        raise no_cells(snapshot.experiment)
    if snapshot.rubric.problem:
        raise StoredDataDamaged(snapshot.rubric.problem)
    return parse_rubric(snapshot.rubric.text, f"rubric.md of run {snapshot.rubric.run_id}")


def no_cells(experiment: Experiment) -> InvalidInput:
    return InvalidInput(
        f"experiment '{experiment.name}' holds no cells yet; "
        f"collect some: tipbench collect --experiment {experiment.name}"
    )
