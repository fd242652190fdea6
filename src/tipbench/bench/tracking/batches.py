"""Converts a judge's batch to an MLflow run, and back. Only the manifest maps slots to candidates.

A batch's scores are stored in a file named by a digest of its content; the tag `tipbench.scores` names the current
file. So replacing scores is a single step, and the old ones remain.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tipbench.bench.records import Batch, Slot, Verdict
from tipbench.bench.tracking import texts
from tipbench.bench.tracking.descriptions import (
    DESCRIPTION,
    batch_description,
    batch_name,
    batch_summary,
    with_summary,
)
from tipbench.bench.tracking.interface import Experiment, StoredRun
from tipbench.bench.tracking.runs import KIND, SCHEMA
from tipbench.bench.tracking.store import RunDraft, RunStore
from tipbench.core.errors import InvalidInput, StoredDataDamaged
from tipbench.core.identity import text_digest
from tipbench.core.untrusted import json_text

BATCH = "batch"
_FILE = "judge.json"  # as the judge receives it, without scores
_SCORES = "tipbench.scores"
_QUARANTINE = "tipbench.quarantine"  # why the batch does not count; empty if it does
_ACCEPTED = "tipbench.drift_accepted"  # who accepted the batch despite its drift, and why
_KAPPAS = "tipbench.kappas"  # the judge's agreement with the anchors, by criterion
_JUDGE_KIND = "tipbench.judge_kind"
_EXPORTED = "tipbench.exported"  # FILE, JOB, or missing
OF_DECISION = "tipbench.decision"  # the decision that a batch is for, and on the decision's own run
FILE, JOB = "file", "job"
_SETTLED = "tipbench.settled"  # "false" from the time scores are stored until all runs reflect them


COST_USD = "agent/cost_usd"  # metric of a batch: what judging it took, if the judge tells


@dataclass(frozen=True)
class AppliedBatch:
    """A batch with its current scores, and whether they count."""

    run: StoredRun
    batch: Batch
    verdicts: tuple[Verdict, ...]
    applied_ms: int
    drift: Mapping[str, Any]
    quarantine: str
    accepted: str

    @property
    def counted(self) -> bool:
        return counts(self.run)


@dataclass(frozen=True)
class BatchSummary:
    """What a comparison reports about an applied batch; contains neither judged texts nor the batch's secret."""

    run_id: str
    batch: str
    judge: str
    rubric_digest: str
    applied_ms: int
    counted: bool
    kappas: Mapping[str, float | None]  # agreement with the anchors, by criterion; empty if it could not be computed


def write_batch(
    store: RunStore,
    experiment: Experiment,
    batch: Batch,
    rubric_name: str,
    rubric_text: str,
    file: Mapping[str, Any] | None = None,
    exported: str = "",
    decision: str = "",
) -> None:
    """Record the batch, after which its file can be applied.

    If `file`, the judge's file, is stored with it, the batch can be judged wherever MLflow can be reached. `exported`
    is FILE if the judge has it as a file, JOB if a job of the server wrote one that nobody asked for.
    """
    slots = [
        {
            "slot": s.slot,
            "run_id": s.run_id,
            "candidate": s.candidate,
            "digest": s.digest,
            "scenario_digest": s.scenario_digest,
            "flags": dict(s.flags),
            "kind": s.kind,
            "of": s.of,
            "reference": dict(s.reference),
        }
        for s in batch.slots
    ]
    store.write_run(
        experiment,
        RunDraft(
            name=batch_name(batch),
            started_ms=batch.created_ms,
            ended_ms=batch.created_ms,
            tags={
                KIND: BATCH,
                "tipbench.schema": SCHEMA,
                "tipbench.batch": batch.id,
                "tipbench.judge": batch.judge,
                _JUDGE_KIND: batch.judge_kind,
                "tipbench.provisional": str(batch.provisional).lower(),
                "tipbench.seed": str(batch.seed),
                "tipbench.rubric": rubric_name,
                "tipbench.rubric_digest": batch.rubric_digest,
                "tipbench.applied": "false",
                **({_EXPORTED: exported} if exported else {}),
                **({OF_DECISION: decision} if decision else {}),
                "mlflow.source.name": "tipbench",
                DESCRIPTION: batch_description(batch, rubric_name),
            },
            metrics={"batch/slots": len(slots)},
            texts={
                "manifest.json": json_text({"secret": batch.secret, "slots": slots}, indent=None),
                "rubric.md": rubric_text,
                **({_FILE: json_text(file, indent=None)} if file else {}),
            },
        ),
    )


def batch_runs(store: RunStore, experiment: Experiment) -> list[StoredRun]:
    return store.runs(experiment, {KIND: BATCH})


def counts(run: StoredRun) -> bool:
    """Return whether a batch's scores count: not provisional, and not in quarantine unless somebody accepted them."""
    return run.tags.get("tipbench.provisional") == "false" and not is_in_quarantine(run)


def is_in_quarantine(run: StoredRun) -> bool:
    return bool(run.tags.get(_QUARANTINE) and not run.tags.get(_ACCEPTED))


def summaries(store: RunStore, runs: Iterable[StoredRun]) -> tuple[BatchSummary, ...]:
    """Summarize those of the batches that have scores, in the order in which they were applied."""
    found = [_summary(store, run) for run in runs if run.tags.get(_SCORES)]
    return tuple(sorted(found, key=lambda one: (one.applied_ms, one.batch)))


def _summary(store: RunStore, run: StoredRun) -> BatchSummary:
    tags = run.tags
    try:
        found = json.loads(tags[_KAPPAS]) if _KAPPAS in tags else _kappas(_read_scores(store, run)["drift"])
        kappas = {str(name): None if value is None else float(value) for name, value in found.items()}
        if not all(value is None or -1 <= value <= 1 for value in kappas.values()):
            raise ValueError(f"a kappa that is none: {kappas}")
        identity = (tags["tipbench.batch"], tags["tipbench.judge"], tags["tipbench.rubric_digest"])
        return BatchSummary(run.run_id, *identity, int(tags["tipbench.applied_ms"]), counts(run), kappas)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoredDataDamaged(f"the batch in run {run.run_id} can't be read: {error!r}") from error


def _kappas(drift: Mapping[str, Any]) -> dict[str, float | None]:
    return {name: figures["kappa"]["value"] for name, figures in drift.get("criteria", {}).items()}


def latest_rubric_digest(runs: Sequence[StoredRun]) -> str | None:
    """Return the rubric digest of the last applied batch that counts; None if no batch counts."""
    newest = deciding_batch(runs)
    return newest.tags.get("tipbench.rubric_digest") if newest and counts(newest) else None


def deciding_batch(runs: Iterable[StoredRun]) -> StoredRun | None:
    """Return the batch whose rubric an experiment is judged by: the newest that counts, else the newest."""
    applied = [run for run in runs if is_applied(run)]
    return max(
        applied, key=lambda run: (counts(run), applied_at_ms(run), run.tags.get("tipbench.batch", "")), default=None
    )


def applied_at_ms(run: StoredRun) -> int:
    """Return when a batch's scores were applied; 0 if they were not."""
    try:
        return int(run.tags.get("tipbench.applied_ms", "0"))
    except ValueError:
        raise StoredDataDamaged(f"tipbench.applied_ms of run {run.run_id} is not a number") from None


def find_batch(store: RunStore, experiment: Experiment, batch_id: str) -> StoredRun:
    return select_batch(store.runs(experiment, {KIND: BATCH, "tipbench.batch": batch_id}), store, experiment, batch_id)


def select_batch(runs: Sequence[StoredRun], store: RunStore, experiment: Experiment, batch_id: str) -> StoredRun:
    for run in runs:
        if run.tags.get("tipbench.batch") == batch_id:
            return run
    raise InvalidInput(
        f"experiment '{experiment.name}' has no batch '{batch_id}'; does this file belong to another experiment, or "
        f"to another MLflow than {store.address}?"
    )


def read_batch(store: RunStore, run: StoredRun) -> Batch:
    text = store.text(run, "manifest.json")
    try:
        data: Any = json.loads(text or "")
        slots = tuple(
            Slot(
                *(e["slot"], e["run_id"], e["candidate"], e["digest"], e["scenario_digest"], e["flags"]),
                *(e.get("kind", "candidate"), e.get("of", ""), e.get("reference", {})),
            )
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
            judge_kind=run.tags.get(_JUDGE_KIND, ""),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise StoredDataDamaged(f"the batch in run {run.run_id} can't be read: {error!r}") from error


def batch_file(store: RunStore, run: StoredRun) -> dict[str, Any]:
    """Return the batch's file as the judge receives it; raise InvalidInput if it was not stored."""
    text = store.text(run, _FILE)
    if text is None:
        raise InvalidInput(
            f"the file of batch {run.tags.get('tipbench.batch')} is not stored in MLflow: it was made for an "
            "automatic judge, or by an earlier version; export it again"
        )
    try:
        data: dict[str, Any] = json.loads(text)
        return {**data, "items": list(data["items"])}
    except (ValueError, KeyError, TypeError) as error:
        raise StoredDataDamaged(f"{_FILE} of run {run.run_id} can't be read: {error!r}") from error


def has_file(run: StoredRun) -> bool:
    return texts.note_key(_FILE) in run.tags


def exported_to(run: StoredRun) -> str:
    """Return FILE or JOB if the batch was exported to a file, else ""; earlier versions did not record it."""
    return run.tags.get(_EXPORTED, "")


def open_batches(store: RunStore, experiment: Experiment, judge: str) -> list[StoredRun]:
    """Return the judge's batches that were not applied."""
    return store.runs(experiment, {KIND: BATCH, "tipbench.judge": judge, "tipbench.applied": "false"})


def is_applied(run: StoredRun) -> bool:
    return run.tags.get("tipbench.applied") == "true"


def write_verdicts(
    store: RunStore,
    run: StoredRun,
    verdicts: Sequence[Verdict],
    drift: Mapping[str, Any],
    quarantine: str,
    accepted: str,
    at_ms: int,
) -> StoredRun:
    """Store a batch's scores and return its run with them.

    They take effect when the tags are written; earlier scores remain in their files.
    """
    entry: dict[str, Any] = {
        "applied_ms": at_ms,
        "judge": run.tags["tipbench.judge"],
        "batch": run.tags["tipbench.batch"],
    }
    entry |= {"rubric_digest": run.tags["tipbench.rubric_digest"], "quarantine": quarantine, "accepted": accepted}
    entry["drift"] = drift
    text = json_text({**entry, "scores": [_score_entry(verdict) for verdict in verdicts]}, indent=None)
    name = f"scores-{text_digest(text)[:12]}.json"
    tags = {
        _SCORES: name,
        "tipbench.applied": "true",
        "tipbench.applied_ms": str(at_ms),
        _QUARANTINE: quarantine,
        _ACCEPTED: accepted,
        _KAPPAS: json_text(_kappas(drift), indent=None),
        _SETTLED: "false",
        **_description(run, verdicts, at_ms, quarantine, accepted),
    }
    store.extend_run(run, tags, new_texts={name: text}, at_ms=at_ms)
    return run._replace(tags={**run.tags, **tags})


def accept_drift(store: RunStore, batch: AppliedBatch, accepted: str) -> None:
    described = _description(batch.run, batch.verdicts, batch.applied_ms, batch.quarantine, accepted)
    store.extend_run(batch.run, {_ACCEPTED: accepted, _SETTLED: "false", **described})


def _description(
    run: StoredRun, verdicts: Sequence[Verdict], applied_ms: int, quarantine: str, accepted: str
) -> dict[str, str]:
    """Return the tag that brings the description of a batch's run up to date; nothing if somebody edited it."""
    provisional = run.tags["tipbench.provisional"] == "true"
    summary = batch_summary(run.tags["tipbench.judge"], verdicts, applied_ms, provisional, (quarantine, accepted))
    description = with_summary(run.tags.get(DESCRIPTION), summary)
    return {} if description is None else {DESCRIPTION: description}


def is_settled(run: StoredRun) -> bool:
    """Return whether the runs reflect the batch's scores; assumed for earlier versions, which did not record it."""
    return run.tags.get(_SETTLED) != "false"


def unsettled_batches(store: RunStore, experiment: Experiment) -> list[StoredRun]:
    """Return batches whose scores may not have reached all runs: applying them is in progress or was interrupted."""
    return store.runs(experiment, {KIND: BATCH, _SETTLED: "false"})


def mark_settled(store: RunStore, runs: Iterable[StoredRun]) -> None:
    for run in runs:
        if not is_settled(run):
            store.extend_run(run, {_SETTLED: "true"})


def applied_batches(
    store: RunStore, runs: Sequence[StoredRun], rubric_digest: str, known: Iterable[AppliedBatch] = ()
) -> list[AppliedBatch]:
    """Return those of the batches that have scores by this rubric, in the order in which they were applied.

    Scores that are among the `known` are not read again.
    """
    by_fingerprint = {(one.run.run_id, _fingerprint(one.run)): one for one in known}
    found = []
    for run in runs:
        if run.tags.get("tipbench.rubric_digest") == rubric_digest:
            same = by_fingerprint.get((run.run_id, _fingerprint(run)))
            applied = replace(same, run=run) if same else applied_batch(store, run)
            found += [applied] if applied else []
    return sorted(found, key=lambda batch: (batch.applied_ms, batch.batch.id))


def batch_fingerprints(runs: Sequence[StoredRun]) -> list[tuple[str, ...]]:
    """Return values that change whenever a batch is applied, replaced or accepted."""
    return sorted(map(_fingerprint, runs))


def _fingerprint(run: StoredRun) -> tuple[str, ...]:
    return tuple(run.tags.get(key, "") for key in ("tipbench.batch", _SCORES, _QUARANTINE, _ACCEPTED))


def applied_batch(store: RunStore, run: StoredRun) -> AppliedBatch | None:
    """Return the batch with its scores; None if it has none yet."""
    name = run.tags.get(_SCORES)
    if name is None:
        return None
    batch = read_batch(store, run)
    slots = {slot.slot: slot for slot in batch.slots}
    try:
        data = _read_scores(store, run)
        verdicts = tuple(
            Verdict(slots[e["slot"]], e["scores"], e["flags"], tuple(e["overruled"]), e["composite"], e["note"])
            for e in data["scores"]
        )
        drift = dict(data["drift"])
        applied_ms = int(run.tags["tipbench.applied_ms"])
    except (ValueError, KeyError, TypeError) as error:
        raise StoredDataDamaged(f"{name} of run {run.run_id} can't be read: {error!r}") from error
    quarantine, accepted = run.tags.get(_QUARANTINE, ""), run.tags.get(_ACCEPTED, "")
    return AppliedBatch(run, batch, verdicts, applied_ms, drift, quarantine, accepted)


def _read_scores(store: RunStore, run: StoredRun) -> Any:
    return json.loads(store.text(run, run.tags[_SCORES]) or "")


def _score_entry(verdict: Verdict) -> dict[str, Any]:
    return {
        "slot": verdict.slot.slot,
        "run_id": verdict.slot.run_id,
        "candidate": verdict.slot.candidate,
        "kind": verdict.slot.kind,
        "scores": dict(verdict.scores),
        "flags": dict(verdict.flags),
        "overruled": list(verdict.overruled),
        "composite": verdict.composite,
        "note": verdict.note,
    }
