"""Whatever a model or a judge wrote, the trace of it can be sent, stored and found again."""

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tipbench.bench.publish.traces import CellContent, Opinion, Trace, cell_traces
from tipbench.bench.records import StoredCell

ANY_TEXT = st.text(st.characters(), max_size=1_500)


def cell(run_id: str = "r1", **changed: Any) -> StoredCell:
    known: dict[str, Any] = {
        **{"run_id": run_id, "key": "k", "model": "m", "prompt": "v1", "prompt_digest": "d", "scenario": "s"},
        **{"factors": {"persona": "p"}, "started_ms": 1_700_000_000_123, "failure": None, "candidates": 1},
        **{"pending": False, "metrics": {"gen/wall_s": 1.5, "gen/prompt_tokens": 7.0, "gen/output_tokens": 3.0}},
        **{"judged_rubric": None, "judged_by": None, "judges": (), "repeat": 0},
    }
    return StoredCell(**known | changed)


def content(one: StoredCell, *candidates: str, note: str = "", score: float = 4) -> CellContent:
    opinion = Opinion("lena", "person", False, 1_700_000_100_000, {"tone": score}, note, "b1")
    return CellContent(one, "about it", [{"role": "user", "content": "do"}], "raw", candidates, {0: [opinion]}, None)


def texts_in(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        yield from (text for pair in data.items() for one in pair for text in texts_in(one))
    elif isinstance(data, list | tuple):
        yield from (text for one in data for text in texts_in(one))


def only(found: CellContent) -> Trace:
    [trace] = cell_traces("1", found)
    return trace


@given(ANY_TEXT, ANY_TEXT)
def test_any_text_can_be_sent(candidate: str, note: str) -> None:
    trace = only(content(cell(model=candidate[:300]), candidate, note=note))
    json.dumps([trace.info, trace.spans], allow_nan=False)
    for text in texts_in([trace.info, trace.spans]):
        text.encode()
        assert "\x00" not in text
    assert len(trace.info["response_preview"]) <= 1_000
    assert all(len(value) <= 8_000 for value in trace.info["tags"].values())


def test_ids_come_from_the_run_and_the_candidate_and_digests_from_the_content() -> None:
    first, second = cell_traces("1", content(cell(), "a", "b"))
    assert first.id != second.id
    again = only(content(cell(), "a"))
    assert (again.id, again.digest, again.assessment_ids) == (first.id, first.digest, first.assessment_ids)
    other_score = only(content(cell(), "a", score=5))
    assert (other_score.id, other_score.assessment_ids) == (first.id, first.assessment_ids)
    assert other_score.digest != first.digest
    assert only(content(cell("r2"), "a")).id != first.id


def test_times_and_tokens_are_those_of_the_call() -> None:
    trace = only(content(cell(), "a"))
    assert (trace.info["request_time"], trace.info["execution_duration"]) == ("2023-11-14T22:13:20.123Z", "1.500s")
    assert json.loads(trace.info["trace_metadata"]["mlflow.trace.tokenUsage"]) == {
        "input_tokens": 7,
        "output_tokens": 3,
        "total_tokens": 10,
    }
    candidate, call = trace.spans
    assert call["parentSpanId"] == candidate["spanId"]
    assert int(call["endTimeUnixNano"]) - int(call["startTimeUnixNano"]) == 1_500_000_000
    uncounted = only(content(cell(metrics={}), "a"))
    assert "mlflow.trace.tokenUsage" not in uncounted.info["trace_metadata"]
