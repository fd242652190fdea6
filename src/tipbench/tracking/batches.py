"""What a judge's batch looks like as an MLflow run, and back. Only the manifest knows which slot is which run."""

import json
from collections.abc import Sequence
from typing import Any

from tipbench.errors import InvalidInput, StoredDataDamaged
from tipbench.records import Batch, Slot, Verdict
from tipbench.tracking.interface import Experiment, StoredRun
from tipbench.tracking.runs import KIND, SCHEMA
from tipbench.tracking.store import RunDraft, RunStore
from tipbench.untrusted import json_text

BATCH = "batch"


def write_batch(store: RunStore, experiment: Experiment, batch: Batch, rubric_name: str, rubric_text: str) -> None:
    """Records the batch; from then on its file can be applied."""
    slots = [
        {
            "slot": s.slot,
            "run_id": s.run_id,
            "candidate": s.candidate,
            "digest": s.digest,
            "scenario_digest": s.scenario_digest,
            "flags": dict(s.flags),
        }
        for s in batch.slots
    ]
    store.write_run(
        experiment,
        RunDraft(
            name=f"batch {batch.id} for {batch.judge}",
            started_ms=batch.created_ms,
            ended_ms=batch.created_ms,
            tags={
                KIND: BATCH,
                "tipbench.schema": SCHEMA,
                "tipbench.batch": batch.id,
                "tipbench.judge": batch.judge,
                "tipbench.provisional": str(batch.provisional).lower(),
                "tipbench.seed": str(batch.seed),
                "tipbench.rubric": rubric_name,
                "tipbench.rubric_digest": batch.rubric_digest,
                "tipbench.applied": "false",
                "mlflow.source.name": "tipbench",
            },
            metrics={"batch/slots": len(slots)},
            texts={"manifest.json": json_text({"secret": batch.secret, "slots": slots}), "rubric.md": rubric_text},
        ),
    )


def batch_runs(store: RunStore, experiment: Experiment) -> list[StoredRun]:
    return store.runs(experiment, {KIND: BATCH})


def find_batch(store: RunStore, experiment: Experiment, batch_id: str) -> StoredRun:
    for run in batch_runs(store, experiment):
        if run.tags.get("tipbench.batch") == batch_id:
            return run
    raise InvalidInput(
        f"experiment '{experiment.name}' has no batch '{batch_id}'; is this file of another experiment, or of another "
        f"MLflow than {store.address}?"
    )


def read_batch(store: RunStore, run: StoredRun) -> Batch:
    text = store.text(run, "manifest.json")
    try:
        data: Any = json.loads(text or "")
        slots = tuple(
            Slot(e["slot"], e["run_id"], e["candidate"], e["digest"], e["scenario_digest"], e["flags"])
            for e in data["slots"]
        )
        return Batch(
            id=run.tags["tipbench.batch"],
            judge=run.tags["tipbench.judge"],
            provisional=run.tags["tipbench.provisional"] == "true",
            seed=int(run.tags["tipbench.seed"]),
            rubric_digest=run.tags["tipbench.rubric_digest"],
            created_ms=run.started_ms,
            secret=data["secret"],
            slots=slots,
            applied=run.tags.get("tipbench.applied") == "true",
        )
    except (ValueError, KeyError, TypeError) as error:
        raise StoredDataDamaged(f"the batch in run {run.run_id} can't be read: {error!r}") from error


def scores_text(verdicts: Sequence[Verdict]) -> str:
    """Every single score of a batch, as it is kept on the batch's run."""
    return json_text(
        {
            "scores": [
                {
                    "slot": v.slot.slot,
                    "run_id": v.slot.run_id,
                    "candidate": v.slot.candidate,
                    "scores": dict(v.scores),
                    "flags": dict(v.flags),
                    "overruled": list(v.overruled),
                    "composite": v.composite,
                    "note": v.note,
                }
                for v in verdicts
            ]
        }
    )


def read_verdicts(store: RunStore, run: StoredRun) -> list[Verdict]:
    """The scores of a batch that was applied; empty before."""
    text = store.text(run, "scores.json")
    if text is None:
        return []
    slots = {slot.slot: slot for slot in read_batch(store, run).slots}
    try:
        return [
            Verdict(slots[e["slot"]], e["scores"], e["flags"], tuple(e["overruled"]), e["composite"], e["note"])
            for e in json.loads(text)["scores"]
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise StoredDataDamaged(f"scores.json of run {run.run_id} can't be read: {error!r}") from error
