"""What counts on the leaderboard is on MLflow's pages, once, whenever and however often it was published."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bench.publish.made_mlflow import Killed, MadeMlflow
from tests.integration.filling import filled
from tipbench.bench.bench import Bench
from tipbench.bench.judge.apply import ApplyOptions
from tipbench.bench.judge.judges.catalog import AGENT, person
from tipbench.bench.judge.judges.interface import JudgeName
from tipbench.bench.judge.sample import BatchSize
from tipbench.bench.publish.publish import Published, take_back
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.tracking.runs import stored_runs

SCORES = ("relevance", "actionability", "tone", "format_ok", "overlong", "composite")
SUPPORT = Path(__file__).parents[2] / "integration" / "suites" / "support"
Collect = Callable[..., Experiment]


@pytest.fixture
def experiment(collected: Collect) -> Experiment:
    """Four cells of two candidates each."""
    return collected(prompts="v1", n_tips=2)


def judged(work: Bench, judge: JudgeName, note: str = "") -> dict[str, Any]:
    """Have a judge score everything; return the scored file."""
    file = filled(work.new_batch(judge, BatchSize(5), "page").file)
    for item in file["items"]:
        item["note"] = note
    work.apply(file)
    return file


def publish(work: Bench) -> Published:
    with Bench("x", context=work.context) as bench:
        return bench.publish()


def names(pages: MadeMlflow) -> Counter[tuple[str, str, str]]:
    found = pages.assessments()
    return Counter((one["source"]["source_type"], one["source"]["source_id"], one["assessment_name"]) for one in found)


def test_every_candidate_is_a_trace_with_its_prompt_answer_and_scores(
    work: Bench, experiment: Experiment, pages: MadeMlflow
) -> None:
    judged(work, person("lena"), note="says when")
    judged(work, person("claude-code-2.1", AGENT))
    published = publish(work)
    assert (published.traces, published.written, published.assessments) == (8, 8, 96)
    assert (published.prompts, published.scenarios, published.left_out) == (1, 2, 0)
    assert names(pages) == {
        (kind, judge, name): 8
        for kind, judge in (("HUMAN", "lena"), ("LLM_JUDGE", "claude-code-2.1"))
        for name in SCORES
    }
    assert {one.get("rationale") for one in pages.assessments()} == {"says when", None}
    runs = {run.run_id: run for run in stored_runs(work.store, experiment)}
    linked = Counter(one["trace_metadata"]["mlflow.sourceRun"] for one in pages.traces.values())
    assert linked == dict.fromkeys(runs, 2)
    for trace in pages.traces.values():
        run = runs[trace["trace_metadata"]["mlflow.sourceRun"]]
        assert trace["tags"]["model"] == run.params["model"]
        candidates = json.loads(work.store.text(run, "candidates.json") or "")["candidates"]
        assert trace["response_preview"] == candidates[int(trace["tags"]["candidate"]) - 1]
        tokens = json.loads(trace["trace_metadata"]["mlflow.trace.tokenUsage"])
        assert tokens["output_tokens"] == run.metrics["gen/output_tokens"]
        assert json.loads(trace["tags"]["mlflow.linkedPrompts"]) == [{"name": "tipbench-tip", "version": "1"}]
    assert len(pages.spans) == 16
    assert pages.prompts["tipbench-tip"]["aliases"] == {"prompt-v1": "1"}, "MLflow reserves v1"
    [dataset] = pages.datasets.values()
    assert (dataset["name"], len(dataset["records"])) == ("x scenarios", 2)


def test_scores_by_code_are_assessments_by_code(work: Bench, collected: Collect, pages: MadeMlflow) -> None:
    collected(suite=str(SUPPORT), models="scripted/a", prompts="v1", n_scenarios=2)
    publish(work)
    assert {(kind, judge) for kind, judge, _ in names(pages)} == {("CODE", "code")}
    assert names(pages)["CODE", "code", "composite"] == 2


def test_nothing_is_doubled_or_missing_wherever_it_was_killed(
    work: Bench, experiment: Experiment, pages: MadeMlflow
) -> None:
    judged(work, person("lena"))
    publish(work)
    expected, calls = pages.content(), pages.calls
    assert publish(work).in_short.startswith("MLflow is up to date: 8 traces with 48 assessments")
    assert pages.content() == expected
    for number in range(1, calls + 1):
        for after in (False, True):
            take_back(work.store, work.experiment)
            assert pages.content() == {"traces": {}, "spans": {}, "prompts": {}, "datasets": []}
            pages.calls, pages.dies_at, pages.dies_after_it = 0, number, after
            with pytest.raises(Killed):
                publish(work)
            pages.dies_at = 0
            publish(work)
            assert pages.content() == expected, f"killed at call {number}"


def test_another_judge_comes_and_scores_change(work: Bench, experiment: Experiment, pages: MadeMlflow) -> None:
    file = judged(work, person("lena"))
    publish(work)
    before = pages.content()
    judged(work, person("ben"))
    assert publish(work).written == 8
    assert len(pages.assessments()) == 96
    for item in file["items"]:
        item["scores"]["tone"] = 6 - item["scores"]["tone"]
    work.apply(file, ApplyOptions(replace=True, accept_drift="a test"))
    publish(work)
    assert len(pages.assessments()) == 96
    for trace_id, trace in pages.traces.items():
        for key, was in before["traces"][trace_id]["assessments"].items():
            value, name = trace["assessments"][key]["feedback"]["value"], was["assessment_name"]
            assert value == (6 - was["feedback"]["value"] if name == "tone" else value)
            assert name in ("tone", "composite") or value == was["feedback"]["value"]


def test_what_somebody_is_judging_is_not_given_away(work: Bench, experiment: Experiment, pages: MadeMlflow) -> None:
    judged(work, person("lena"))
    publish(work)
    first = work.new_batch(person("ben"), BatchSize(1, limit=2), "page")
    published = publish(work)
    assert (published.left_out, published.traces, published.removed) == (2, 4, 4)
    [note] = published.notes
    assert note.startswith("2 cells left out, because a batch with their texts is open (judge: ben)")
    work.apply(filled(first.file))
    assert (publish(work).left_out, len(pages.traces)) == (0, 8)


def test_a_batch_without_a_reader_hides_nothing(work: Bench, experiment: Experiment, pages: MadeMlflow) -> None:
    work.new_batch(JudgeName("command", kind="command"), BatchSize(5))
    work.new_batch(person("person"), BatchSize(5), "job")
    assert (publish(work).left_out, len(pages.traces)) == (0, 8)


def test_a_lost_file_hides_nothing_once_the_judge_has_scored_another(
    work: Bench, experiment: Experiment, pages: MadeMlflow
) -> None:
    work.new_batch(person("lena"), BatchSize(5), "file")
    assert publish(work).left_out == 4
    judged(work, person("lena"))
    assert (publish(work).left_out, len(pages.assessments())) == (0, 48)


def test_scores_that_do_not_count_are_taken_back(work: Bench, experiment: Experiment, pages: MadeMlflow) -> None:
    work.judge("lexical")
    publish(work)
    assert {kind for kind, _, _ in names(pages)} == {"CODE"}, "provisional scores, while there are no others"
    assert {one["metadata"]["provisional"] for one in pages.assessments()} == {"true"}
    judged(work, person("lena"))
    publish(work)
    assert {judge for _, judge, _ in names(pages)} == {"lena"}
    with Bench("x", context=work.context) as bench:
        bench.collect(models="scripted/a", prompts="v1", n_tips=2, n_scenarios=2, fresh=True)
    published = publish(work)
    assert (published.removed, published.traces, published.assessments) == (4, 8, 24), "new answers, not judged yet"


def test_what_people_add_on_mlflows_pages_stays(work: Bench, experiment: Experiment, pages: MadeMlflow) -> None:
    judged(work, person("lena"))
    publish(work)
    trace = next(iter(pages.traces.values()))
    trace["assessments"]["a-1"] = {"assessment_id": "a-1", "assessment_name": "mine", "source": {}, "metadata": {}}
    own = next(key for key in trace["assessments"] if key != "a-1")
    del trace["assessments"][own]
    assert publish(work).written == 1, "ours is brought back"
    assert {"a-1", own} <= trace["assessments"].keys()


def test_experiments_share_prompts_until_the_last_is_deleted(
    work: Bench, experiment: Experiment, pages: MadeMlflow
) -> None:
    publish(work)
    with Bench("y", context=work.context) as other:
        other.collect(models="scripted/a", prompts="v1,v2-mentor", n_scenarios=1)
        other.publish()
        assert pages.prompts["tipbench-tip"]["aliases"] == {"prompt-v1": "1", "v2-mentor": "2"}
        work.delete()
        assert pages.prompts["tipbench-tip"]["tags"]["_mlflow_experiment_ids"] == f",{other.experiment.id},"
        assert {one["tags"]["prompt"] for one in pages.traces.values()} == {"v1", "v2-mentor"}
        other.delete()
    assert pages.content() == {"traces": {}, "spans": {}, "prompts": {}, "datasets": []}


def test_deleting_what_was_never_published_asks_nothing(work: Bench, experiment: Experiment, pages: MadeMlflow) -> None:
    work.delete()
    assert pages.calls == 0


def test_a_prompt_whose_text_is_gone_is_said(work: Bench, experiment: Experiment, pages: MadeMlflow) -> None:
    for run in stored_runs(work.store, experiment):
        work.store.extend_run(run, {"tipbench.prompt_digest": "0" * 64})
    [note] = publish(work).notes
    assert note.startswith("The prompt registry has no v1: the text that was used is not in the suite")
    assert len(pages.traces) == 8


def test_answers_without_a_candidate_and_failures_are_traces_too(
    work: Bench, collected: Collect, pages: MadeMlflow, tmp_path: Path
) -> None:
    script = tmp_path / "odd.yaml"
    rules = [{"when": "Now: Wednesday, 07:10", "fail": "out of memory"}, {"when": "", "answer": ""}]
    script.write_text(json.dumps({"parameters": 1_000_000, "rules": rules}))
    collected(models=f"scripted/{script}", prompts="v1", n_scenarios=8)
    publish(work)
    assert Counter(trace["state"] for trace in pages.traces.values()) == {"ERROR": 1, "OK": 7}
    [failed] = [trace for trace in pages.traces.values() if trace["state"] == "ERROR"]
    assert "out of memory" in failed["response_preview"]
    assert names(pages) == {("CODE", "rule", name): 7 for name in SCORES}
