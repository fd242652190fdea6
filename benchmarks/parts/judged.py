"""A large experiment that was judged: real runs, a real batch, and the apply that every judge file goes through."""

import random
import time
from dataclasses import replace
from itertools import count
from pathlib import Path

from tests.integration.filling import filled

from benchmarks.parts.drafts import finished_cells
from benchmarks.parts.stored import opened
from tipbench.bench.judge.apply import ApplyOptions, apply_file
from tipbench.bench.judge.export import export_batch
from tipbench.bench.judge.judges.catalog import person
from tipbench.bench.judge.sample import BatchSize
from tipbench.bench.suites.load import load_suite
from tipbench.bench.tracking.store import RunDraft

EXPERIMENT = "tip-bench-large"
ROWS, SCENARIOS = 12, 834
_MODELS = ("scripted/a", "scripted/b", "scripted/c", "scripted/d")
_PROMPTS = ("v1", "v2-mentor", "v3-few-shot")
_AT_ONCE = 64  # as a collection delivers its cells


def pending_experiment(database: Path, experiment: str = EXPERIMENT, scenarios: int = SCENARIOS) -> int:
    """Stores an experiment that nobody has judged yet, and says with how many cells."""
    drafts = [_as_number(number, draft) for number, draft in enumerate(finished_cells(ROWS * scenarios))]
    with opened(f"sqlite:///{database}") as store, store.session():
        made = store.ensure_experiment(experiment, {"tipbench.suite": "tip"})
        for start in range(0, len(drafts), _AT_ONCE):
            store.write_runs(made, drafts[start : start + _AT_ONCE])
    return len(drafts)


def judged_experiment(database: Path, scenarios: int = SCENARIOS) -> int:
    """Fills the database, and says with how many cells."""
    suite = load_suite("tip")
    cells = pending_experiment(database, scenarios=scenarios)
    ids = count(1)
    now_ms = round(time.time() * 1000)
    with opened(f"sqlite:///{database}") as store, store.session():
        experiment = store.experiment(EXPERIMENT)
        judge, one_a_cell = person("person"), BatchSize(sample=1)
        new_id = lambda: f"{next(ids):016x}"  # noqa: E731
        exported = export_batch(
            store, experiment, suite.rubric, judge, 0, new_id, now_ms, size=one_a_cell, gold=suite.anchors
        )
        file = filled(exported.file)
        drawn = random.Random(1)
        known = {anchor.candidate for anchor in suite.anchors}
        for item in file["items"]:
            if item["candidate"] not in known:  # the same few texts over and over would all score the same
                item["scores"] = {name: drawn.randint(s["min"], s["max"]) for name, s in file["scales"].items()}
        # Items that stand in the file twice get two scores by chance, which would keep the batch from counting.
        applied = apply_file(store, experiment, file, now_ms, ApplyOptions(accept_drift="scores are drawn at random"))
    if applied.runs != cells or not applied.accepted:
        raise SystemExit(f"{applied.runs} runs were judged, not {cells}; the figures would mean nothing")
    return cells


def many_experiments(database: Path, count: int, scenarios: int) -> None:
    for number in range(count):
        pending_experiment(database, f"tip-bench-{number:03}", scenarios)


def _as_number(number: int, draft: RunDraft) -> RunDraft:
    """A cell of a grid that no suite has: two scenarios a persona."""
    scenario, row = divmod(number, ROWS)
    prompt, model = divmod(row, len(_MODELS))
    params = {
        **draft.params,
        "model": _MODELS[model],
        "prompt": _PROMPTS[prompt],
        "scenario": f"scenario-{scenario}",
        "factor.persona": f"persona-{scenario // 2}",
    }
    tags = {
        "tipbench.prompt_digest": f"digest-of-{_PROMPTS[prompt]}",
        "tipbench.cell_key": f"{number:064x}",
        "tipbench.cluster": "persona",
    }
    return replace(draft, params=params, tags={**draft.tags, **tags})
