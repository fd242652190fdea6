"""What the store promises over every MLflow: in process, over REST, with files and without."""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tipbench.bench.tracking.interface import NEWEST_AT_ONCE, NOT_COMPARED, Experiment, Names, StoredRun
from tipbench.bench.tracking.store import RunDraft, RunStore
from tipbench.core.errors import InvalidInput, TrackingError

UGLY = ('"\\ ü 😀\x00\ud83d\x1b[31m\r\n\t\u202e\ufeff\\u0000 …' * 1_000)[:20_000]
TEXTS = {"raw.txt": UGLY, "prompt.txt": "", "rubric.md": "# Plain\r\n\tüber 😀\n"}


def a_draft(started_ms: int = 1_000, **changes: Any) -> RunDraft:
    made: dict[str, Any] = {
        "name": "model × v1 × maya-morning",
        "started_ms": started_ms,
        "ended_ms": started_ms + 500,
        "tags": {"tipbench.kind": "cell", "judge_pending": "true", "empty": ""},
        "params": {"model": "qwen2.5:0.5b", "factor.persona": "maya", "seed": "7"},
        "metrics": {"gen/generate_s": 0.25, "answer/candidates": 5},
    }
    return RunDraft(**{**made, **changes})


class StoreContract:
    """Inherited by one class for each kind of MLflow; their modules define the fixtures `store` and `experiment`."""

    def only_run(self, store: RunStore, experiment: Experiment) -> StoredRun:
        [run] = store.runs(experiment, {})
        return run

    def test_an_experiment_is_made_once_and_keeps_its_tags(self, store: RunStore) -> None:
        made = store.ensure_experiment("tip-bench-once", {"tipbench.suite": "tip", "note": ""})
        again = store.ensure_experiment("tip-bench-once", {"tipbench.suite": "other"})
        assert (again.id, again.name, again.tags["tipbench.suite"]) == (made.id, "tip-bench-once", "tip")
        assert store.find_experiment("tip-bench-once") == store.experiment("tip-bench-once") == again
        assert made.created_ms > 0

    def test_eight_that_make_it_at_once_get_the_same(self, store: RunStore) -> None:
        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(lambda _: store.ensure_experiment("tip-bench-race", {}).id, range(8)))
        assert len(set(made)) == 1
        assert [e.name for e in store.experiments("tip-bench-race")] == ["tip-bench-race"]

    def test_experiments_by_prefix(self, store: RunStore) -> None:
        for name in ("list-b", "list-a", "other ' \" % ü"):
            store.ensure_experiment(name, {})
        assert [e.name for e in store.experiments("list-")] == ["list-b", "list-a"]  # in the order of their making
        assert store.experiment("other ' \" % ü").name == "other ' \" % ü"

    def test_who_reads_some_names_alone_gets_at_least_these_of_the_same_runs(
        self, store: RunStore, experiment: Experiment
    ) -> None:
        store.write_run(experiment, a_draft(2_000, status="FAILED", tags={"tipbench.kind": "cell", "empty": ""}))
        told = {"tipbench.kind": "cell", "judge_pending": "true", "empty": "", "mlflow.note.content": "About it."}
        store.write_run(experiment, a_draft(1_000, tags=told))
        store.write_run(experiment, a_draft(3_000, tags={"tipbench.kind": "batch"}))
        cells = {"tipbench.kind": "cell"}
        found = list(store.iter_runs(experiment, cells, only=Names(("judge_pending", "empty", "none"))))
        whole = list(store.iter_runs(experiment, cells))
        assert [(run.run_id, run.status, run.started_ms) for run in found] == [
            (run.run_id, run.status, run.started_ms) for run in whole
        ]
        assert [(run.tags.get("judge_pending"), run.tags["empty"], "none" in run.tags) for run in found] == [
            ("true", "", False), (None, "", False),
        ]  # fmt: skip
        param, metric = next(iter(whole[0].params)), next(iter(whole[0].metrics))
        (first, *_) = store.iter_runs(experiment, cells, only=Names(("mlflow.note.content",), (param,), (metric,)))
        assert first.tags["mlflow.note.content"] == "About it."  # or who writes it again would lose it
        assert first.params[param] == whole[0].params[param]
        assert (first.metrics[metric], first.steps[metric]) == (whole[0].metrics[metric], whole[0].steps[metric])

    def test_the_newest_runs_come_first(self, store: RunStore, experiment: Experiment) -> None:
        started = [5_000 + 100 * (n * 7 % NEWEST_AT_ONCE) + n for n in range(NEWEST_AT_ONCE + 5)]
        for started_ms in started:
            store.write_run(experiment, a_draft(started_ms, texts={}))
        store.write_run(experiment, a_draft(9_000, tags={"tipbench.kind": "batch"}))
        found = store.newest_runs(experiment, {"tipbench.kind": "cell"})
        assert [run.started_ms for run in found] == sorted(started, reverse=True)

    def test_no_such_experiment(self, store: RunStore) -> None:
        assert store.find_experiment("tip-bench-none") is None
        with pytest.raises(InvalidInput, match=r"no experiment 'tip-bench-none' in .*tipbench experiments"):
            store.experiment("tip-bench-none")
        with pytest.raises(InvalidInput, match="no deleted experiment"):
            store.restore_experiment("tip-bench-none")

    def test_a_deleted_experiment_keeps_its_name_and_comes_back(self, store: RunStore) -> None:
        made = store.ensure_experiment("tip-bench-gone", {})
        store.write_run(made, a_draft())
        store.delete_experiment(made)
        assert store.find_experiment("tip-bench-gone") is None
        assert store.experiments("tip-bench-gone") == []
        for ask in (store.experiment, lambda name: store.ensure_experiment(name, {})):
            with pytest.raises(InvalidInput, match=r"was deleted, .* 'tipbench experiments restore tip-bench-gone'"):
                ask("tip-bench-gone")
        store.restore_experiment("tip-bench-gone")
        assert store.experiment("tip-bench-gone").id == made.id
        assert len(store.runs(made, {})) == 1

    def test_a_run_comes_back_as_it_was_written(self, store: RunStore, experiment: Experiment) -> None:
        draft = a_draft(texts=TEXTS)
        run_id = store.write_run(experiment, draft)
        run = self.only_run(store, experiment)
        assert (run.run_id, run.status, run.started_ms) == (run_id, "FINISHED", 1_000)
        assert draft.tags.items() <= run.tags.items()
        assert (run.params, run.metrics) == (draft.params, draft.metrics)
        assert {name: store.text(run, name) for name in TEXTS} == TEXTS
        assert store.text(run, "scores.json") is None

    def test_failed_runs_are_results_and_half_written_ones_are_not(
        self, store: RunStore, experiment: Experiment
    ) -> None:
        failed = store.write_run(experiment, a_draft(status="FAILED"))
        store._api.create_run(experiment.id, "half", 2_000, {"tipbench.kind": "cell"})
        assert [run.run_id for run in store.runs(experiment, {"tipbench.kind": "cell"})] == [failed]

    def test_runs_by_tags_oldest_first(self, store: RunStore, experiment: Experiment) -> None:
        for started, kind in ((3_000, "cell"), (1_000, "cell"), (2_000, "batch")):
            store.write_run(experiment, a_draft(started, tags={"tipbench.kind": kind, "artifact:a.b": "x"}))
        assert [run.started_ms for run in store.runs(experiment, {"tipbench.kind": "cell"})] == [1_000, 3_000]
        assert [run.started_ms for run in store.runs(experiment, {"artifact:a.b": "x"})] == [1_000, 2_000, 3_000]
        assert store.runs(experiment, {"tipbench.kind": "none"}) == []

    def test_a_brief_reading_leaves_out_texts_and_nothing_else(self, store: RunStore, experiment: Experiment) -> None:
        store.write_run(experiment, a_draft(texts=TEXTS))
        [run], [brief] = list(store.iter_runs(experiment, {})), list(store.iter_runs(experiment, {}, NOT_COMPARED))
        kept = {key: value for key, value in run.tags.items() if not key.startswith(NOT_COMPARED)}
        assert {"tipbench.kind", "judge_pending", "empty"} <= kept.keys()
        assert kept.items() <= brief.tags.items()
        assert brief._replace(tags={}, metrics={}, steps={}) == run._replace(tags={}, metrics={}, steps={})
        figures = {key: value for key, value in run.metrics.items() if not key.startswith(NOT_COMPARED)}
        assert figures
        assert figures.items() <= brief.metrics.items() <= run.metrics.items()
        assert run.experiment_id == experiment.id

    def test_runs_are_found_by_their_ids(self, store: RunStore, experiment: Experiment) -> None:
        first, second, _ = (store.write_run(experiment, a_draft(texts=TEXTS)) for _ in range(3))
        found = store.runs_by_id(experiment, [second, "0" * 32, first])
        assert found == {run.run_id: run for run in store.runs(experiment, {}) if run.run_id in (first, second)}
        assert store.text(found[second], "raw.txt") == TEXTS["raw.txt"]
        assert store.runs_by_id(experiment, []) == {}

    def test_tags_of_an_experiment_come_and_go(self, store: RunStore, experiment: Experiment) -> None:
        for key, value in (("a", "1"), ("b ü", "2"), ("a", "3")):
            store._api.tag_experiment(experiment.id, key, value)
        assert {"a": "3", "b ü": "2"}.items() <= store.experiment(experiment.name).tags.items()
        store._api.untag_experiment(experiment.id, "a")
        found = store.experiment(experiment.name).tags
        assert ("a" in found, found["b ü"]) == (False, "2")

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_a_metric_that_is_no_number_is_refused_before_anything_is_written(
        self, store: RunStore, experiment: Experiment, value: float
    ) -> None:
        with pytest.raises(TrackingError, match=r"composite is .*, which MLflow can't store"):
            store.write_run(experiment, a_draft(metrics={"a": 1.0, "composite": value}, texts=TEXTS))
        assert list(store._api.search_runs(experiment.id, {})) == []
        store.write_run(experiment, a_draft())
        before = self.only_run(store, experiment)
        with pytest.raises(TrackingError):
            store.extend_run(before, {"new": "tag"}, {"composite": value}, {"scores.json": "{}"})
        assert self.only_run(store, experiment) == before

    def test_what_mlflow_would_cut_is_refused_before_anything_is_written(
        self, store: RunStore, experiment: Experiment
    ) -> None:
        long, too_long = {"long": "ü" * 5_000}, {"long": "x" * 5_001}
        for draft in (a_draft(tags=too_long), a_draft(params=too_long)):
            with pytest.raises(TrackingError, match="has 5001 characters; MLflow would truncate it"):
                store.write_run(experiment, draft)
        assert list(store._api.search_runs(experiment.id, {})) == []
        store.write_run(experiment, a_draft(tags=long, params=long))
        run = self.only_run(store, experiment)
        assert run.tags["long"] == run.params["long"] == "ü" * 5_000

    @pytest.mark.parametrize("value", ["a \x00 in it", "half a \ud83d smile"])
    def test_what_no_database_holds_is_refused_before_anything_is_written(
        self, store: RunStore, experiment: Experiment, value: str
    ) -> None:
        for draft in (a_draft(tags={"a": value}), a_draft(params={"a": value})):
            with pytest.raises(
                TrackingError, match=r"the value of a is .*, with a character that databases can't store"
            ):
                store.write_run(experiment, draft)
        assert list(store._api.search_runs(experiment.id, {})) == []
        store.write_run(experiment, a_draft())
        before = self.only_run(store, experiment)
        with pytest.raises(TrackingError):
            store.extend_run(before, {"a": value}, {"composite": 1.0})
        assert self.only_run(store, experiment) == before

    def test_a_lower_score_replaces_a_higher_one(self, store: RunStore, experiment: Experiment) -> None:
        store.write_run(experiment, a_draft())
        for value in (17.0, 2.0, 9.0, 9.0, -1.0):
            run = self.only_run(store, experiment)
            store.extend_run(run, {"judged": str(value)}, {"composite": value}, at_ms=7_000)
            after = self.only_run(store, experiment)
            assert (after.metrics["composite"], after.tags["judged"]) == (value, str(value))
        assert after.steps["composite"] == 4
        assert after.metrics["gen/generate_s"] == 0.25

    def test_more_tags_than_mlflow_takes_at_once(self, store: RunStore, experiment: Experiment) -> None:
        many = {f"tag.{n}": "v" * 10 for n in range(250)}
        store.write_run(experiment, a_draft())
        store.extend_run(self.only_run(store, experiment), many, {"composite": 3.0})
        run = self.only_run(store, experiment)
        assert many.items() <= run.tags.items()
        assert run.metrics["composite"] == 3.0

    def test_a_text_longer_than_a_request(self, store: RunStore, experiment: Experiment) -> None:
        long = "".join(chr(0x1F600 + n % 60) for n in range(600_000))  # 2.4 MB in UTF-8
        store.write_run(experiment, a_draft(texts={"raw.txt": long}))
        assert store.text(self.only_run(store, experiment), "raw.txt") == long
