"""Converts a cell to an MLflow run, and back."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import isfinite
from sys import intern
from typing import Any, NamedTuple, TypeVar

from tipbench.bench.records import (
    BY_CODE,
    BY_RULE,
    Answer,
    Failure,
    JudgeNote,
    Outcome,
    RubricText,
    StoredCandidates,
    StoredCell,
)
from tipbench.bench.tracking.descriptions import DESCRIPTION, cell_description
from tipbench.bench.tracking.interface import NOT_COMPARED, Experiment, Names, StoredRun
from tipbench.bench.tracking.store import DONE, RunDraft, RunStore
from tipbench.core.errors import StoredDataDamaged
from tipbench.core.identity import SHORT
from tipbench.core.untrusted import json_data, json_text, printable

SCHEMA = "1"  # of all stored data; increase it when old data would be misread
CELL_TEXTS = ("candidates.json", "prompt.txt", "raw.txt")
KIND = "tipbench.kind"
CELL = "cell"
SUPERSEDED = "tipbench.superseded"  # set on runs that no longer count: regenerated, or generated twice
_JUDGE = "tipbench.judge:"
PENDING = "judge_pending"
JUDGED_RUBRIC = "tipbench.judged_rubric"
JUDGED_BY = "tipbench.judged_by"
RUBRIC_FILE = "tipbench.rubric_file"  # the rubric's text, where another one than rubric.md has scored since
CHECKS = "tipbench.checks"  # each candidate's flags, where code alone scores
_FACTOR = "factor."
_SCHEMA = "tipbench.schema"
_KEY = "tipbench.cell_key"
_FAILURE = "tipbench.failure"
_IDENTITY = (_SCHEMA, _KEY, SUPERSEDED)  # what says which run counts for a cell
_SYSTEM, _USER = "[system]\n", "[user]\n"  # before the messages in prompt.txt
_LARGEST = 1e300
_Taken = TypeVar("_Taken")
_SETTINGS = ("n_tips", "temperature", "max_tokens", "diversity")


def cell_draft(
    outcome: Outcome,
    rubric: RubricText,
    suite: str,
    version: str,
    span_ms: tuple[int, int],
    memory: Mapping[str, float] | None = None,
) -> RunDraft:
    """Return a finished cell as a run: settings as params, identity as tags, figures as metrics, texts as files."""
    cell = outcome.cell
    request = cell.request
    params = {
        "model": cell.model.name,
        "prompt": cell.prompt,
        "scenario": cell.scenario.id,
        **{f"{_FACTOR}{factor}": level for factor, level in cell.scenario.factors.items()},
        "suite": suite,
        "n_tips": str(cell.n_tips),
        "temperature": str(request.temperature),
        "max_tokens": str(request.max_tokens),
        "diversity": str(cell.diversity).lower(),
        "seed": str(request.seed),
        "base_seed": str(cell.base_seed),
        "repeat": str(cell.repeat),
    }
    tags = {
        KIND: CELL,
        _SCHEMA: SCHEMA,
        "tipbench.version": version,
        _KEY: cell.key,
        "tipbench.engine": cell.model.engine,
        "tipbench.model_digest": cell.model.digest or "unknown: the name stands for it",
        "tipbench.parameters": str(cell.model.parameters or "unknown"),
        "tipbench.parameters_from": cell.model.parameters_from,
        "tipbench.model_bytes": str(cell.model.size_bytes or "unknown"),
        "tipbench.quantization": cell.model.quantization or "unknown",
        "tipbench.prompt_digest": cell.prompt_digest,
        "tipbench.rubric": rubric.name,
        "tipbench.rubric_digest": rubric.digest,
        "mlflow.source.name": "tipbench",
        DESCRIPTION: cell_description(outcome, rubric),
    }
    if cell.scenario.cluster:
        tags["tipbench.cluster"] = cell.scenario.cluster
    texts = {"prompt.txt": _prompt_text(outcome), "rubric.md": rubric.text}
    metrics: dict[str, float] = dict(memory or {})
    if isinstance(outcome, Failure):
        tags |= {PENDING: "false", _FAILURE: printable(outcome.reason, 2_000)}
    else:
        tags |= _answer_tags(outcome, rubric)
        metrics |= {"gen/wall_s": (span_ms[1] - span_ms[0]) / 1000, **_answer_metrics(outcome, rubric)}
        texts |= {"raw.txt": outcome.generation.text, "candidates.json": _candidates_text(outcome)}
    return RunDraft(
        name=cell.label,
        started_ms=span_ms[0],
        ended_ms=span_ms[1],
        status="FAILED" if isinstance(outcome, Failure) else "FINISHED",
        tags=tags,
        params=params,
        metrics=metrics,
        texts=texts,
    )


def stored_runs(store: RunStore, experiment: Experiment, omit: Sequence[str] = ()) -> list[StoredRun]:
    """Return one run per cell: of several with the same key, an answer precedes a failure, then the oldest counts.

    Tags and metrics that begin with what is in `omit` are left out.
    """
    return _one_per_cell(store.iter_runs(experiment, {KIND: CELL}, omit), lambda run: run)


def stored_cells(store: RunStore, experiment: Experiment) -> tuple[StoredCell, ...]:
    """Return the same runs as cells; faster, because their texts are not read. Only the cells are held in memory."""

    def cell_or_damage(run: StoredRun) -> StoredCell | StoredDataDamaged:
        try:
            return stored_cell(run)
        except StoredDataDamaged as error:  # does not matter if another run counts
            return error

    cells: list[StoredCell] = []
    for found in _one_per_cell(store.iter_runs(experiment, {KIND: CELL}, NOT_COMPARED), cell_or_damage):
        if isinstance(found, StoredDataDamaged):
            raise found
        cells.append(found)
    return tuple(cells)


class CellCounts(NamedTuple):
    """How many cells an experiment has, and how many of them wait for a judge or failed."""

    cells: int
    pending: int
    failed: int

    @property
    def judged(self) -> int:
        return self.cells - self.pending - self.failed

    @classmethod
    def of(cls, cells: Sequence[StoredCell]) -> "CellCounts":
        return cls(len(cells), sum(cell.pending for cell in cells), sum(cell.failure is not None for cell in cells))


def count_cells(store: RunStore, experiment: Experiment) -> CellCounts:
    """Count the cells, by the tags that tell; from a database file in a third of the time that reading them takes."""
    found = store.iter_runs(experiment, {KIND: CELL}, only=Names((*_IDENTITY, PENDING, _FAILURE)))
    runs = _one_per_cell(found, lambda run: run)
    for run in runs:
        _check_schema(run)
    pending = sum(run.tags.get(PENDING) == "true" for run in runs)
    return CellCounts(len(runs), pending, sum(_FAILURE in run.tags for run in runs))


def unjudged_cells(store: RunStore, experiment: Experiment) -> int | None:
    """Return how many cells wait for a judge; None if any cell has scores."""
    found = store.iter_runs(experiment, {KIND: CELL}, only=Names((*_IDENTITY, PENDING, JUDGED_BY)))
    runs = _one_per_cell(found, lambda run: run)
    if any(JUDGED_BY in run.tags for run in runs):
        return None
    return sum(run.tags.get(PENDING) == "true" for run in runs)


def newest_cell(store: RunStore, experiment: Experiment) -> StoredRun | None:
    """Return the newest run of a cell; None if there is no cell."""
    found = store.newest_runs(experiment, {KIND: CELL})
    return next((run for run in found if run.status in DONE and SUPERSEDED not in run.tags), None)


def _one_per_cell(runs: Iterable[StoredRun], take: Callable[[StoredRun], _Taken]) -> list[_Taken]:
    """Return what is taken of the run that counts for each cell, oldest first, whatever the order of the input."""
    counting: dict[str, tuple[tuple[bool, int, str], _Taken]] = {}
    for run in runs:
        if run.status not in DONE or SUPERSEDED in run.tags:
            continue
        key = run.tags.get(_KEY, run.run_id)
        known, precedence = counting.get(key), _precedence(run)
        if known is None or precedence < known[0]:
            counting[key] = precedence, take(run)
    oldest_first = sorted(counting.values(), key=lambda one: one[0][1:])
    return [taken for _, taken in oldest_first]


def _precedence(run: StoredRun) -> tuple[bool, int, str]:
    return run.status == "FAILED", run.started_ms, run.run_id


def supersede_duplicates(store: RunStore, experiment: Experiment) -> int:
    """Tag all but the oldest answer of each cell as superseded; return how many.

    There are several if hosts that share a server collected at the same time.
    """
    oldest: dict[str, tuple[int, str]] = {}
    later: list[str] = []
    for run in store.iter_runs(experiment, {KIND: CELL}):
        if run.status == "FINISHED" and SUPERSEDED not in run.tags:
            key, age = run.tags.get(_KEY, run.run_id), (run.started_ms, run.run_id)
            known = oldest.setdefault(key, age)
            if known != age:
                oldest[key] = min(known, age)
                later.append(max(known, age)[1])
    with store.session():
        for run_id in later:
            store.tag_run(experiment, run_id, {SUPERSEDED: "true", "judge_pending": "false"})
    return len(later)


class JudgedSoFar(NamedTuple):
    """How many candidates a stored cell has, and who has judged them. Its fields are a StoredCell's."""

    candidates: int
    judges: tuple[JudgeNote, ...]


def judged_so_far(run: StoredRun) -> JudgedSoFar:
    _check_schema(run)
    try:
        return JudgedSoFar(int(run.metrics.get("answer/candidates", 0)), _judge_notes(run.tags))
    except (KeyError, ValueError, TypeError) as error:
        raise _damaged(run, error) from error


class StoredOutcome(NamedTuple):
    """What planning needs of a stored cell. Its fields are a StoredCell's."""

    key: str
    model: str
    scenario: str
    failure: str | None
    metrics: Mapping[str, float]
    settings: Mapping[str, str]


def iter_outcomes(store: RunStore, experiment: Experiment) -> Iterator[StoredOutcome]:
    """Yield the cells as they are read, in constant memory; several may have the same key."""
    needed = Names((*_IDENTITY, _FAILURE), ("model", "scenario", "max_tokens"), ("gen/wall_s",))
    for run in store.iter_runs(experiment, {KIND: CELL}, only=needed):
        if run.status in DONE and SUPERSEDED not in run.tags:
            _check_schema(run)
            tags, params = run.tags, run.params
            try:
                of = tags[_KEY], params["model"], params["scenario"]
            except KeyError as error:
                raise _damaged(run, error) from error
            yield StoredOutcome(*of, tags.get(_FAILURE), _finite(run.metrics), params)


def _check_schema(run: StoredRun) -> None:
    if run.tags.get(_SCHEMA) != SCHEMA:
        raise StoredDataDamaged(
            f"run {run.run_id} was stored with schema {run.tags.get(_SCHEMA)!r}; this tipbench reads {SCHEMA!r}"
        )


def stored_cell(run: StoredRun) -> StoredCell:
    _check_schema(run)
    tags, params = run.tags, run.params
    try:
        return StoredCell(
            run_id=run.run_id,
            key=tags[_KEY],
            model=intern(params["model"]),
            prompt=intern(params["prompt"]),
            prompt_digest=intern(tags["tipbench.prompt_digest"]),
            scenario=intern(params["scenario"]),
            factors=_shared(*sorted((key[len(_FACTOR) :], params[key]) for key in params if key.startswith(_FACTOR))),
            started_ms=run.started_ms,
            failure=tags.get(_FAILURE),
            candidates=int(run.metrics.get("answer/candidates", 0)),
            pending=tags.get(PENDING) == "true",
            metrics=_finite(run.metrics),
            judged_rubric=intern(tags.get(JUDGED_RUBRIC, "")) or None,
            judged_by=intern(tags.get(JUDGED_BY, "")) or None,
            judges=_judge_notes(tags),
            repeat=int(params.get("repeat", "0")),
            settings=_shared(
                ("model_digest", tags["tipbench.model_digest"]), *((key, params[key]) for key in _SETTINGS)
            ),
            cluster=intern(tags["tipbench.cluster"]) if "tipbench.cluster" in tags else None,
            model_bytes=_int_or_none(tags.get("tipbench.model_bytes")),
            parameters=_int_or_none(tags.get("tipbench.parameters")),
            checks=tags.get(CHECKS, ""),
        )
    except (KeyError, ValueError, TypeError) as error:
        raise _damaged(run, error) from error


def _damaged(run: StoredRun, error: Exception) -> StoredDataDamaged:
    return StoredDataDamaged(f"run {run.run_id} is not a complete cell: {error!r} is missing or not a number")


@lru_cache(maxsize=10_000)
def _shared(*pairs: tuple[str, str]) -> Mapping[str, str]:
    """Return a mapping that equal cells share: with the texts, half of the memory that a large experiment takes."""
    return dict(pairs)


def _finite(metrics: Mapping[str, float]) -> Mapping[str, float]:
    """Drop NaN and infinity, which others may have logged; MLflow stores infinity as the largest float."""
    values = metrics.values()
    if not metrics or (all(map(isfinite, values)) and max(values) < _LARGEST and min(values) > -_LARGEST):
        return metrics
    return {key: value for key, value in metrics.items() if -_LARGEST < value < _LARGEST}


def _int_or_none(number: str | None) -> int | None:
    return int(number) if number and number.isdecimal() else None


def stored_candidates(store: RunStore, run: StoredRun) -> StoredCandidates:
    text = store.text(run, "candidates.json")
    try:
        data: Any = json_data(text or "")
        scenario = data["scenario"]
        return StoredCandidates(scenario["text"], data["format_ok"], tuple(data["candidates"]), scenario.get("id", ""))
    except (ValueError, KeyError, TypeError) as error:
        raise StoredDataDamaged(f"candidates.json of run {run.run_id} can't be read: {error!r}") from error


def stored_messages(store: RunStore, run: StoredRun) -> list[dict[str, str]]:
    """Return the rendered prompt as chat messages."""
    text = store.text(run, "prompt.txt") or ""
    system, divider, user = text.partition(f"\n\n{_USER}") if text.startswith(_SYSTEM) else ("", "", text)
    if not divider:
        return [{"role": "user", "content": text.removeprefix(_USER)}]
    return [{"role": "system", "content": system.removeprefix(_SYSTEM)}, {"role": "user", "content": user}]


def stored_rubric(store: RunStore, run: StoredRun) -> str:
    name = run.tags.get(RUBRIC_FILE, "rubric.md")
    text = store.text(run, name)
    if text is None:
        raise StoredDataDamaged(f"run {run.run_id} has no {name}")
    return text


def judge_key(judge: str, rubric_digest: str) -> str:
    """Return the key of the tag that records on a run that a judge scored it by this rubric."""
    return f"{_JUDGE}{judge}:{rubric_digest[:SHORT]}"


@lru_cache(maxsize=1_000)  # all runs of a batch have the same tag
def judge_tag(note: JudgeNote) -> tuple[str, str]:
    """Return the key and the value of that tag."""
    data = {
        "rubric": note.rubric_digest,
        "batch": note.batch,
        "provisional": note.provisional,
        "counted": note.counted,
    }
    return judge_key(note.judge, note.rubric_digest), json.dumps(data)


def _judge_notes(tags: Mapping[str, str]) -> tuple[JudgeNote, ...]:
    notes = [_judge_note(key, tags[key]) for key in tags if key.startswith(_JUDGE)]
    return tuple(sorted(notes, key=lambda note: (note.judge, note.rubric_digest)))


@lru_cache(maxsize=1_000)  # all runs of a batch have the same tag
def _judge_note(key: str, value: str) -> JudgeNote:
    data = json.loads(value)
    judge, provisional = key.removeprefix(_JUDGE).rpartition(":")[0], data["provisional"]
    return JudgeNote(judge, data["rubric"], data["batch"], provisional, data.get("counted", not provisional))


def _answer_tags(answer: Answer, rubric: RubricText) -> dict[str, str]:
    tags = {
        "judge_pending": "true" if answer.candidates else "false",
        "tipbench.finish_reason": printable(answer.generation.finish_reason, 100),
        "tipbench.read_as": answer.read_as,
    }
    if not answer.candidates:
        # An answer without a candidate can't be judged: it scores the rubric's minimum by rule.
        tags |= {JUDGED_RUBRIC: rubric.digest, JUDGED_BY: BY_RULE}
    elif answer.scores:
        tags |= code_tags(rubric.digest, answer.checks)
    return tags


def code_tags(rubric_digest: str, checks: Sequence[Mapping[str, bool]]) -> dict[str, str]:
    """Return the tags of a cell that code has scored: by which rubric, and each candidate's flags."""
    by_flag = {name: "".join(str(int(one[name])) for one in checks) for name in checks[0]}
    found = json.dumps({"rubric": rubric_digest[:SHORT], "flags": by_flag})
    return {PENDING: "false", JUDGED_RUBRIC: rubric_digest, JUDGED_BY: BY_CODE, CHECKS: found}


def flags_by_code(checks: str, rubric_digest: str) -> list[dict[str, bool]]:
    """Return each candidate's flags from the tag that `code_tags` wrote; none if another rubric's, or unreadable."""
    if not checks:
        return []
    try:
        found = json.loads(checks)
        by_flag: dict[str, str] = found["flags"] if found["rubric"] == rubric_digest[:SHORT] else {}
        return [dict(zip(by_flag, map("1".__eq__, one), strict=True)) for one in zip(*by_flag.values(), strict=True)]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


def _answer_metrics(answer: Answer, rubric: RubricText) -> dict[str, float]:
    made = answer.generation
    known = {
        "answer/candidates": len(answer.candidates),
        "answer/found": answer.found,
        "answer/format_ok": float(answer.format_ok),
        "answer/diversity": answer.diversity,
        "gen/prompt_tokens": made.prompt_tokens,
        "gen/output_tokens": made.output_tokens,
        "gen/load_s": made.load_s,
        "gen/generate_s": made.generate_s,
    }
    metrics = {key: float(value) for key, value in known.items() if value is not None}
    return {**metrics, **(answer.scores if answer.candidates else rubric.lowest)}


def _candidates_text(answer: Answer) -> str:
    return json_text(
        {
            "scenario": {"id": answer.cell.scenario.id, "text": answer.cell.scenario.text},
            "format_ok": answer.format_ok,
            "candidates": list(answer.candidates),
        }
    )


def _prompt_text(outcome: Outcome) -> str:
    return "\n\n".join(f"[{message.role}]\n{message.content}" for message in outcome.cell.request.messages)
