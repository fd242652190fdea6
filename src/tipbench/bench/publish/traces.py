"""Candidates as MLflow traces, with judges' scores as assessments.

Ids are derived from what they stand for: a trace's from its run and the candidate's number, an assessment's from its
trace, judge and criterion. So publishing again, after a kill or from another machine, meets what is already there.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from tipbench.bench.judge.judges.catalog import PERSON
from tipbench.bench.publish.scenarios import scenario_inputs
from tipbench.bench.records import BY_CODE, BY_RULE, StoredCell, Verdict
from tipbench.bench.suites.rubric import Rubric
from tipbench.core.identity import data_digest
from tipbench.core.untrusted import printable, storable

KIND, CANDIDATE = "tipbench.kind", "candidate"  # tag of every trace of ours
DIGEST = "tipbench.digest"  # tag that is written last: a trace that has the right one is complete
ASSESSMENT = "a-tipbench-"  # how the ids of our assessments begin; people may add others on MLflow's pages
PROMPTS = "mlflow.linkedPrompts"
_SOURCES: Mapping[str, str] = {
    PERSON: "HUMAN",
    "lexical": "CODE",
    BY_CODE: "CODE",
    BY_RULE: "CODE",
}  # any other kind is LLM_JUDGE
_PREVIEW = 1_000  # characters; databases other than SQLite refuse longer ones


@dataclass(frozen=True)
class Opinion:
    """One judge's scores of one candidate."""

    judge: str
    kind: str
    provisional: bool
    at_ms: int
    scores: Mapping[str, float | bool]  # criteria, flags and composite
    note: str
    batch: str = ""

    @classmethod
    def of_verdict(
        cls, verdict: Verdict, judge: str, kind: str, provisional: bool, at_ms: int, batch: str
    ) -> "Opinion":
        scores = {**verdict.scores, **verdict.flags, "composite": verdict.composite}
        return cls(judge, kind, provisional, at_ms, scores, verdict.note, batch)


@dataclass(frozen=True)
class CellContent:
    """A cell with everything that its traces show."""

    cell: StoredCell
    about: str  # the scenario in words
    messages: Sequence[Mapping[str, str]]
    answer: str
    candidates: Sequence[str]
    opinions: Mapping[int, Sequence[Opinion]]  # by the candidate's number
    prompt: tuple[str, str] | None  # name and version in the prompt registry


@dataclass(frozen=True)
class Trace:
    """A trace as MLflow's REST API takes it."""

    id: str
    info: Mapping[str, Any]
    spans: Sequence[Mapping[str, Any]]
    digest: str

    @property
    def assessment_ids(self) -> set[str]:
        return {one["assessment_id"] for one in self.info["assessments"]}


def cell_traces(experiment_id: str, content: CellContent) -> Iterator[Trace]:
    """Yield a trace for each candidate; one for the whole answer if nothing could be read from it, or it failed."""
    for number, text in enumerate(content.candidates or [content.answer]):
        yield _trace(experiment_id, content, number, text)


def rule_opinion(cell: StoredCell, rubric: Rubric) -> Opinion:
    """Return the scores that an answer without a candidate gets by rule."""
    scores = {name: cell.metrics[name] for name in rubric.score_names if name in cell.metrics}
    return Opinion(BY_RULE, BY_RULE, False, cell.started_ms, scores, "no candidate could be read from the answer")


def _trace(experiment_id: str, content: CellContent, number: int, text: str) -> Trace:
    cell = content.cell
    trace_id = f"tr-{data_digest(['trace', cell.run_id, number])[:32]}"
    wall_s = max(0.0, cell.metrics.get("gen/wall_s", 0.0))
    failure = cell.failure
    tags = {
        KIND: CANDIDATE,
        "mlflow.traceName": printable(f"{cell.scenario} · {cell.model} × {cell.prompt} · {number + 1}", 250),
        "model": printable(cell.model, 250),
        "prompt": printable(cell.prompt, 250),
        "scenario": printable(cell.scenario, 250),
        "candidate": str(number + 1),
        **({PROMPTS: _linked(content.prompt)} if content.prompt else {}),
    }
    info = {
        "trace_id": trace_id,
        "trace_location": {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment_id}},
        "request_preview": storable(content.about).text[:_PREVIEW],
        "response_preview": storable(text if failure is None else failure).text[:_PREVIEW],
        "request_time": _time(cell.started_ms),
        "execution_duration": f"{wall_s:.3f}s",
        "state": "OK" if failure is None else "ERROR",
        "trace_metadata": {
            "mlflow.sourceRun": cell.run_id,
            "mlflow.trace_schema.version": "3",
            **({"mlflow.trace.tokenUsage": json.dumps(tokens)} if (tokens := _tokens(cell)) else {}),
        },
        "tags": tags,
        "assessments": [
            _assessment(trace_id, opinion, name, value)
            for opinion in content.opinions.get(number, ())
            for name, value in opinion.scores.items()
        ],
    }
    spans = _spans(trace_id, content, text, round(wall_s * 1000))
    digest = data_digest([info, spans])
    spans[0]["attributes"].append(_attribute(f"mlflow.traceTag.{DIGEST}", digest))
    return Trace(trace_id, info, spans, digest)


def _assessment(trace_id: str, opinion: Opinion, name: str, value: float | bool) -> dict[str, Any]:
    at = _time(opinion.at_ms)
    metadata = {"tipbench.batch": opinion.batch, **({"provisional": "true"} if opinion.provisional else {})}
    return {
        "assessment_id": f"{ASSESSMENT}{data_digest(['assessment', trace_id, opinion.judge, name])[:32]}",
        "assessment_name": name,
        "trace_id": trace_id,
        "source": {"source_type": _SOURCES.get(opinion.kind, "LLM_JUDGE"), "source_id": opinion.judge},
        "create_time": at,
        "last_update_time": at,
        "feedback": {"value": value},
        "valid": True,
        **({"rationale": storable(opinion.note).text} if opinion.note else {}),
        "metadata": metadata,
    }


def _spans(trace_id: str, content: CellContent, text: str, wall_ms: int) -> list[dict[str, Any]]:
    """Return the candidate's span, and within it the call that wrote the whole answer."""
    cell = content.cell
    call: dict[str, Any] = {
        "mlflow.spanType": "CHAT_MODEL",
        "mlflow.spanInputs": {"messages": [dict(one) for one in content.messages]},
        "mlflow.spanOutputs": content.answer,
        "mlflow.llm.model": cell.model,
        **{name: value for name, value in cell.metrics.items() if name.startswith("gen/")},
        **{name: value for name, value in cell.settings.items() if name != "model_digest"},
        **({"mlflow.chat.tokenUsage": tokens} if (tokens := _tokens(cell)) else {}),
    }
    candidate = {
        "mlflow.spanType": "CHAIN",
        "mlflow.spanInputs": scenario_inputs(cell, content.about),
        "mlflow.spanOutputs": text,
    }
    root = _span(trace_id, "candidate", None, candidate, cell, wall_ms)
    return [root, _span(trace_id, "generate", root["spanId"], call, cell, wall_ms)]


def _span(
    trace_id: str, name: str, parent: str | None, attributes: Mapping[str, Any], cell: StoredCell, wall_ms: int
) -> dict[str, Any]:
    code: Literal["STATUS_CODE_OK", "STATUS_CODE_ERROR"]
    code = "STATUS_CODE_OK" if cell.failure is None else "STATUS_CODE_ERROR"
    return {
        "traceId": trace_id.removeprefix("tr-"),
        "spanId": data_digest(["span", trace_id, name])[:16],
        **({"parentSpanId": parent} if parent else {}),
        "name": name,
        "startTimeUnixNano": str(cell.started_ms * 1_000_000),
        "endTimeUnixNano": str((cell.started_ms + wall_ms) * 1_000_000),
        "status": {"code": code, "message": storable(cell.failure or "").text},
        "attributes": [_attribute(key, value) for key, value in attributes.items()],
    }


def _attribute(key: str, value: Any) -> dict[str, Any]:
    return {"key": key, "value": _any_value(value)}


def _any_value(value: Any) -> dict[str, Any]:
    """Return a value as OpenTelemetry's JSON has it."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, str):
        return {"stringValue": storable(value).text}
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": [_attribute(key, one) for key, one in value.items()]}}
    return {"arrayValue": {"values": [_any_value(one) for one in value]}}


def _tokens(cell: StoredCell) -> dict[str, int]:
    """Return the tokens of the call that wrote the answer; empty if the engine did not count them."""
    given, written = cell.metrics.get("gen/prompt_tokens"), cell.metrics.get("gen/output_tokens")
    if given is None or written is None:
        return {}
    return {"input_tokens": int(given), "output_tokens": int(written), "total_tokens": int(given + written)}


def _linked(prompt: tuple[str, str]) -> str:
    return json.dumps([{"name": prompt[0], "version": prompt[1]}])


def _time(milliseconds: int) -> str:
    return (
        datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{milliseconds % 1000:03}Z"
    )
