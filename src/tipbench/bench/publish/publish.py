"""Brings MLflow's prompts, traces and dataset of an experiment up to date with what counts on its leaderboard.

What MLflow holds is compared with what it should hold, and only differences are written. Each step can be interrupted
and repeated: what was written is found again in MLflow by ids and tags, whoever wrote it.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from tipbench.bench.compare.snapshot import Snapshot
from tipbench.bench.judge.by_code import code_verdicts
from tipbench.bench.judge.judges.catalog import PERSON
from tipbench.bench.judge.settle import Item, effective_batches
from tipbench.bench.publish.prompts import publish_prompts, take_back_prompts
from tipbench.bench.publish.scenarios import publish_scenarios, take_back_scenarios
from tipbench.bench.publish.traces import (
    ASSESSMENT,
    CANDIDATE,
    DIGEST,
    KIND,
    CellContent,
    Opinion,
    Trace,
    cell_traces,
    rule_opinion,
)
from tipbench.bench.records import BY_CODE
from tipbench.bench.suites.rubric import Rubric
from tipbench.bench.suites.suite import Suite
from tipbench.bench.tracking.batches import (
    JOB,
    AppliedBatch,
    applied_batches,
    batch_runs,
    exported_to,
    has_file,
    is_applied,
    read_batch,
)
from tipbench.bench.tracking.genai import GenAi, StoredTrace
from tipbench.bench.tracking.interface import Experiment, StoredRun
from tipbench.bench.tracking.runs import stored_candidates, stored_cell, stored_messages, stored_runs
from tipbench.bench.tracking.store import RunStore
from tipbench.core.text import counted

_PUBLISHED = "tipbench.published"  # tag of an experiment: whether something of it may be on MLflow's pages
_CELLS_AT_ONCE = 8  # whose spans go into one request


@dataclass
class Published:
    """What publishing found and did."""

    traces: int = 0  # that MLflow holds now
    written: int = 0  # of them: created or changed
    removed: int = 0  # traces that no longer belong there
    assessments: int = 0
    prompts: int = 0
    scenarios: int = 0
    left_out: int = 0  # cells that somebody is judging
    seconds: float = 0.0  # that writing traces took
    notes: list[str] = field(default_factory=list)

    @property
    def in_short(self) -> str:
        """What happened, in a sentence."""
        if not (self.written or self.removed):
            return f"MLflow is up to date: {self._held}."
        rate = f" at {self.written / self.seconds:.0f} traces/s" if self.written and self.seconds else ""
        removed = f", {counted(self.removed, 'trace')} removed" if self.removed else ""
        return f"MLflow now has {self._held}; {self.written} written{rate}{removed}."

    @property
    def _held(self) -> str:
        return (
            f"{counted(self.traces, 'trace')} with {counted(self.assessments, 'assessment')}, "
            f"{counted(self.prompts, 'prompt version')} and {counted(self.scenarios, 'scenario')}"
        )


def publish(
    store: RunStore,
    snapshot: Snapshot,
    rubric: Rubric,
    suite: Suite | None,
    report: Callable[[int, int], None] = lambda _done, _of: None,
) -> Published:
    """Publish the experiment of the snapshot, which was just taken; without a suite, no prompt can be registered.

    `report` is called with how many of how many cells are published. Raises TrackingError if MLflow refuses; what was
    written until then stays, and the next call completes it.
    """
    experiment = snapshot.experiment
    runs = stored_runs(store, experiment)
    batches = batch_runs(store, experiment)
    applied = applied_batches(store, batches, rubric.digest)
    opinions = _opinions(applied)
    in_judging = _in_judging(store, batches, applied)
    published = Published()
    shown = [run for run in runs if run.run_id not in in_judging]
    published.left_out = len(runs) - len(shown)
    if published.left_out:
        judges = ", ".join(sorted({judge for run in runs for judge in in_judging.get(run.run_id, ())}))
        published.notes.append(
            f"{counted(published.left_out, 'cell')} left out, because a batch with their texts is open (judge: "
            f"{judges}); publish again when its scores are applied."
        )
    cells = [stored_cell(run) for run in runs]
    if experiment.tags.get(_PUBLISHED) != "true":
        store.tag_experiment(experiment, _PUBLISHED, "true")
    with store.rest() as rest:
        api = GenAi(rest)
        prompts, notes = publish_prompts(api, experiment, suite, cells)
        published.prompts, published.notes = len(set(prompts.values())), published.notes + notes
        abouts = _Scenarios(store, runs)
        published.scenarios = publish_scenarios(api, experiment, cells, abouts.text)
        contents = (_content(store, run, rubric, opinions.get(run.run_id, {}), abouts, prompts) for run in shown)
        _publish_traces(api, experiment, contents, published, lambda done: report(done, len(shown)))
    return published


def take_back(store: RunStore, experiment: Experiment) -> None:
    """Remove from MLflow's pages what was published of this experiment, if anything was."""
    if experiment.tags.get(_PUBLISHED) != "true":
        return
    with store.rest() as rest:
        api = GenAi(rest)
        found = [one.id for one in api.traces(experiment.id, {KIND: CANDIDATE})]
        api.delete_traces(experiment.id, found)
        take_back_scenarios(api, experiment)
        take_back_prompts(api, experiment)
    store.tag_experiment(experiment, _PUBLISHED, "false")


def _opinions(applied: Sequence[AppliedBatch]) -> dict[str, dict[int, list[Opinion]]]:
    """Return the scores to publish, by run and candidate: those that count, or provisional ones if none count."""
    any_counted = any(batch.counted for batch in applied)
    latest: dict[Item, dict[str, Opinion]] = {}
    for judge, own in effective_batches(applied).items():
        for one in own:
            batch = one.batch
            if not one.counted and (any_counted or not batch.provisional):
                continue
            for verdict in one.verdicts:
                if verdict.slot.kind == "candidate":
                    origin = (judge, _kind_of_judge(one), batch.provisional, one.applied_ms, batch.id)
                    opinion = Opinion.of_verdict(verdict, *origin)
                    latest.setdefault((verdict.slot.run_id, verdict.slot.candidate), {})[judge] = opinion
    by_run: dict[str, dict[int, list[Opinion]]] = {}
    for (run_id, number), found in latest.items():
        by_run.setdefault(run_id, {})[number] = list(found.values())
    return by_run


def _kind_of_judge(batch: AppliedBatch) -> str:
    """Return the kind of a batch's judge; earlier versions did not record it, but stored no file for programs."""
    unknown = "lexical" if batch.batch.provisional else PERSON if has_file(batch.run) else ""
    return batch.batch.judge_kind or unknown


def _in_judging(store: RunStore, runs: Iterable[StoredRun], applied: Sequence[AppliedBatch]) -> dict[str, set[str]]:
    """Return the cells' runs that have texts in open batches, with the judges who have not scored them yet.

    A batch stays open for ever if its file was lost and the judge got another one: items that the judge has scored
    since are no secret to that judge. Batches of programs, and those that a job wrote unasked, have no reader.
    """
    scored = {
        (batch.batch.judge, verdict.slot.run_id, verdict.slot.candidate)
        for batch in applied
        for verdict in batch.verdicts
    }
    found: dict[str, set[str]] = {}
    for run in runs:
        if is_applied(run) or not has_file(run) or exported_to(run) == JOB:
            continue
        batch = read_batch(store, run)
        for slot in batch.slots:
            if slot.run_id and (batch.judge, slot.run_id, slot.candidate) not in scored:
                found.setdefault(slot.run_id, set()).add(batch.judge)
    return found


class _Scenarios:
    """The scenarios' texts, which are stored with the answers."""

    def __init__(self, store: RunStore, runs: Sequence[StoredRun]) -> None:
        self._store = store
        self._runs: dict[str, StoredRun] = {}
        for run in runs:
            if "tipbench.failure" not in run.tags:
                self._runs.setdefault(run.params["scenario"], run)
        self._texts: dict[str, str] = {}

    def text(self, scenario: str) -> str:
        """Return a scenario in words; empty if no cell of it was answered."""
        if scenario not in self._texts:
            run = self._runs.get(scenario)
            self._texts[scenario] = stored_candidates(self._store, run).scenario if run else ""
        return self._texts[scenario]


def _content(
    store: RunStore,
    run: StoredRun,
    rubric: Rubric,
    opinions: Mapping[int, Sequence[Opinion]],
    scenarios: _Scenarios,
    prompts: Mapping[str, tuple[str, str]],
) -> CellContent:
    cell = stored_cell(run)
    if cell.is_empty and cell.is_counted(rubric.digest):
        opinions = {0: [rule_opinion(cell, rubric)]}
    by_code = {
        number: [Opinion.of_verdict(verdict, BY_CODE, BY_CODE, False, cell.started_ms, "")]
        for (_, number), verdict in code_verdicts([cell], rubric).items()
    }
    return CellContent(
        cell=cell,
        about=scenarios.text(cell.scenario),
        messages=stored_messages(store, run),
        answer=store.text(run, "raw.txt") or "",
        candidates=stored_candidates(store, run).texts if cell.failure is None else (),
        opinions={**by_code, **opinions},
        prompt=prompts.get(cell.prompt_digest),
    )


def _publish_traces(
    api: GenAi,
    experiment: Experiment,
    contents: Iterable[CellContent],
    published: Published,
    report: Callable[[int], None],
) -> None:
    present = {trace.id: trace for trace in api.traces(experiment.id, {KIND: CANDIDATE})}
    wanted: set[str] = set()
    done = 0
    for group in _groups(contents):
        traces = [trace for content in group for trace in cell_traces(experiment.id, content)]
        wanted |= {trace.id for trace in traces}
        published.assessments += sum(len(trace.assessment_ids) for trace in traces)
        changed = [trace for trace in traces if not _is_complete(present.get(trace.id), trace)]
        started = time.monotonic()
        _write(api, experiment.id, changed, present)
        published.seconds += time.monotonic() - started
        published.written += len(changed)
        report(done := done + len(group))
    stale = sorted(present.keys() - wanted)
    api.delete_traces(experiment.id, stale)
    published.traces, published.removed = len(wanted), len(stale)


def _groups(contents: Iterable[CellContent]) -> Iterator[list[CellContent]]:
    source = iter(contents)
    while group := list(islice(source, _CELLS_AT_ONCE)):
        yield group


def _is_complete(found: StoredTrace | None, trace: Trace) -> bool:
    return found is not None and found.tags.get(DIGEST) == trace.digest and _ours(found) == trace.assessment_ids


def _ours(found: StoredTrace) -> set[str]:
    return {one for one in found.assessment_ids if one.startswith(ASSESSMENT)}


def _write(api: GenAi, experiment_id: str, traces: Sequence[Trace], present: Mapping[str, StoredTrace]) -> None:
    """Write traces. Their digests come last, with the spans: until then, they count as incomplete."""
    for trace in traces:
        found = present.get(trace.id)
        for stale in sorted(_ours(found) - trace.assessment_ids) if found else ():
            api.delete_assessment(trace.id, stale)
        api.write_trace(trace.info)
    if traces:
        api.write_spans(experiment_id, [span for trace in traces for span in trace.spans])
