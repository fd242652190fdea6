"""Scores are written all or nothing, once; those of several judges stand side by side."""

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.integration.filling import filled
from tipbench.bench.bench import Bench
from tipbench.bench.compare.leaderboard import leaderboard_of
from tipbench.bench.compare.snapshot import Snapshot, load_snapshot
from tipbench.bench.judge.apply import Applied, ApplyOptions, apply_file
from tipbench.bench.judge.drift import assess
from tipbench.bench.judge.export import export_batch, pending_runs
from tipbench.bench.judge.judges.interface import Judge, JudgeName
from tipbench.bench.judge.judges.lexical import LexicalJudge
from tipbench.bench.judge.sample import BatchSize
from tipbench.bench.judge.settle import changes_for, finish_applying
from tipbench.bench.judge.verify import read_judge_file
from tipbench.bench.report import current_rubric
from tipbench.bench.suites.load import load_suite
from tipbench.bench.suites.rubric import Rubric, parse_rubric
from tipbench.bench.tracking.batches import applied_batches, batch_runs
from tipbench.bench.tracking.descriptions import DESCRIPTION, summary_of
from tipbench.bench.tracking.embedded import EmbeddedMlflow
from tipbench.bench.tracking.interface import Experiment, StoredRun
from tipbench.bench.tracking.runs import stored_cell, stored_runs
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import InvalidInput, JudgeFailed, StoredDataDamaged, TrackingError

SUITE = load_suite("tip")
RUBRIC = SUITE.rubric
STRICTER = parse_rubric(RUBRIC.text.replace("# Rubric tip-v1", "# Rubric tip-v1, read more strictly"))
FILE = dict[str, Any]


def _export(
    work: Bench,
    experiment: Experiment,
    judge: str = "ana",
    rubric: Rubric = RUBRIC,
    sample: int = 5,
    anchors: bool = False,
) -> FILE:
    gold = SUITE.anchors if anchors else ()
    now = (work.context.new_id, work.now_ms)
    return export_batch(work.store, experiment, rubric, JudgeName(judge), 0, *now, BatchSize(sample), gold).file


def _apply(work: Bench, experiment: Experiment, file: FILE, **manner: Any) -> Applied:
    return apply_file(work.store, experiment, file, work.now_ms, ApplyOptions(**manner), SUITE.anchors)


def _run_judge(work: Bench, rubric: Rubric, judge: Judge, size: BatchSize) -> Applied:
    work.rubric, work.anchors = rubric, ()
    return work.judge(judge, size=size)


def _look(work: Bench, experiment: Experiment) -> Snapshot:
    return load_snapshot(work.store, experiment, work.context.settings.home)


def _judged(store: RunStore, experiment: Experiment) -> int:
    return sum(stored_cell(run).is_counted(RUBRIC.digest) for run in stored_runs(store, experiment))


def _waiting(work: Bench, experiment: Experiment, judge: str, rubric: Rubric = RUBRIC) -> int:
    return len(pending_runs(stored_runs(work.store, experiment), judge, rubric))


def _state(work: Bench, experiment: Experiment) -> dict[str, Any]:
    """Everything that an apply may write, but the times and steps of it."""
    runs = {run.run_id: (run.metrics, _scored(run.tags)) for run in stored_runs(work.store, experiment)}
    batches = {
        b.batch.id: (b.verdicts, b.counted)
        for b in applied_batches(work.store, batch_runs(work.store, experiment), RUBRIC.digest)
    }
    return {**runs, **batches}


def _scored(tags: Any) -> dict[str, str]:
    return {key: value for key, value in tags.items() if "judge" in key}


def _shifted(file: FILE, criterion: str, by: int) -> FILE:
    shifted = filled(file)
    for item in shifted["items"]:
        item["scores"][criterion] = max(1, min(5, item["scores"][criterion] + by))
    return shifted


def test_a_changed_rubric_means_judging_again(work: Bench, experiment: Experiment) -> None:
    _apply(work, experiment, filled(_export(work, experiment)))
    assert _waiting(work, experiment, "ana") == 0
    assert _waiting(work, experiment, "ana", STRICTER) == 12
    _apply(work, experiment, filled(_export(work, experiment, rubric=STRICTER)))
    assert current_rubric(work.store, experiment).digest == STRICTER.digest
    assert leaderboard_of(_look(work, experiment), STRICTER).judged == 12


def test_every_judge_has_a_view_of_its_own_and_the_runs_scores_are_between_them(
    work: Bench, experiment: Experiment
) -> None:
    ana = filled(_export(work, experiment, "ana"))
    ben = _shifted(_export(work, experiment, "ben"), "tone", 1)
    for file in (ana, ben):
        assert _apply(work, experiment, file).counted
    assert _waiting(work, experiment, "ana") == _waiting(work, experiment, "ben") == 0
    assert _waiting(work, experiment, "cleo") == 12, "pending is per judge"
    for run in stored_runs(work.store, experiment):
        own = [run.metrics[f"judge/{judge}/tone"] for judge in ("ana", "ben")]
        assert run.metrics["relevance"] == run.metrics["judge/ana/relevance"]
        assert run.metrics["tone"] == pytest.approx(sum(own) / 2)
        assert run.tags["tipbench.judged_by"] == "ana, ben"
    board = leaderboard_of(_look(work, experiment), RUBRIC)
    assert (board.judges, board.judged, board.provisional) == (("ana", "ben"), 12, False)


def test_a_lenient_judge_of_half_the_cells_does_not_lift_that_half(work: Bench, experiment: Experiment) -> None:
    """Both judges saw everything in one half; in the other only the lenient one did."""
    strict = filled(_export(work, experiment, "strict"))
    lenient = filled(_export(work, experiment, "lenient"))
    for item in strict["items"]:
        item["scores"] = {"relevance": 2, "actionability": 2, "tone": 2}
    for item in lenient["items"]:
        item["scores"] = {"relevance": 4, "actionability": 2, "tone": 2}
    runs = [run.run_id for run in stored_runs(work.store, experiment)]
    half = set(runs[:6])
    slots = _slots_of(work, experiment, strict["batch"])
    for item in strict["items"]:
        if slots[item["slot"]] not in half:
            item["scores"] = dict.fromkeys(item["scores"])
    _apply(work, experiment, strict, partial=True)
    _apply(work, experiment, lenient)
    found = {run.metrics["relevance"] for run in stored_runs(work.store, experiment)}
    assert max(found) - min(found) < 1e-6, "a plain mean would give 3 to one half and 4 to the other"


def _slots_of(work: Bench, experiment: Experiment, batch: str) -> dict[str, str]:
    from tipbench.bench.tracking.batches import find_batch, read_batch

    manifest = read_batch(work.store, find_batch(work.store, experiment, batch))
    return {slot.slot: slot.run_id for slot in manifest.slots}


def test_the_same_file_again_changes_nothing(work: Bench, experiment: Experiment) -> None:
    file = filled(_export(work, experiment, anchors=True))
    assert _apply(work, experiment, file).changed is True
    before = _state(work, experiment)
    again = _apply(work, experiment, file)
    assert (again.changed, again.settled.runs) == (False, 0)
    assert _state(work, experiment) == before


def test_other_scores_by_the_same_judge_need_replace_and_the_old_ones_stay(work: Bench, experiment: Experiment) -> None:
    file = filled(_export(work, experiment))
    _apply(work, experiment, file)
    before = _state(work, experiment)
    other = _shifted(file, "tone", -1)
    with pytest.raises(InvalidInput, match=r"have other scores by 'ana' already; nothing was written\. --replace"):
        _apply(work, experiment, other)
    assert _state(work, experiment) == before
    replaced = _apply(work, experiment, other, replace=True)
    assert replaced.replaced > 0
    assert _state(work, experiment) != before
    [run] = batch_runs(work.store, experiment)
    assert sum(key.startswith("tipbench.text:scores-") for key in run.tags) == 2


def test_a_later_batch_of_the_same_candidates_needs_replace_too(work: Bench, experiment: Experiment) -> None:
    first, second = filled(_export(work, experiment)), _shifted(_export(work, experiment), "tone", -1)
    _apply(work, experiment, first)
    with pytest.raises(InvalidInput, match="--replace"):
        _apply(work, experiment, second)
    _apply(work, experiment, second, replace=True)
    given = {item["slot"]: item["scores"]["tone"] for item in second["items"]}
    slots = _slots_of(work, experiment, second["batch"])
    for run in stored_runs(work.store, experiment):
        own = {slot: score for slot, score in given.items() if slots[slot] == run.run_id}
        assert min(own.values()) <= run.metrics["tone"] <= max(own.values())


def test_a_dry_run_says_the_same_and_writes_nothing(work: Bench, experiment: Experiment) -> None:
    file = filled(_export(work, experiment, anchors=True))
    before = _state(work, experiment)
    would = _apply(work, experiment, file, dry_run=True)
    assert _state(work, experiment) == before
    did = _apply(work, experiment, file)
    assert (would.candidates, would.runs, would.drift, would.changed) == (did.candidates, did.runs, did.drift, True)


def test_partial_takes_the_runs_that_are_scored_completely_and_the_rest_can_follow(
    work: Bench, experiment: Experiment
) -> None:
    whole = filled(_export(work, experiment))
    half = {**whole, "items": [dict(item) for item in whole["items"]]}
    slots = _slots_of(work, experiment, whole["batch"])
    runs = sorted(set(slots.values()))
    for item in half["items"]:
        if slots[item["slot"]] in runs[:7]:
            item["scores"] = dict.fromkeys(item["scores"])
    one = next(item for item in half["items"] if slots[item["slot"]] == runs[7])
    one["scores"] = dict.fromkeys(one["scores"])
    with pytest.raises(InvalidInput, match="not filled in"):
        _apply(work, experiment, half)
    applied = _apply(work, experiment, half, partial=True)
    assert (applied.runs, applied.left) == (4, 40)
    assert _judged(work.store, experiment) == 4
    assert _apply(work, experiment, whole).replaced == 0
    assert _judged(work.store, experiment) == 12


def test_partial_does_not_take_what_is_wrong(work: Bench, experiment: Experiment) -> None:
    file = filled(_export(work, experiment))
    file["items"][3]["scores"]["tone"] = 6
    with pytest.raises(InvalidInput, match=r"items\[3\].*6 is outside 1–5"):
        _apply(work, experiment, file, partial=True)
    assert _judged(work.store, experiment) == 0


def test_partial_never_takes_back_what_was_applied(work: Bench, experiment: Experiment) -> None:
    whole = filled(_export(work, experiment))
    _apply(work, experiment, whole)
    before = _state(work, experiment)
    part = {**whole, "items": [dict(item) for item in whole["items"]]}
    for item in part["items"][:20]:
        item["scores"] = dict.fromkeys(item["scores"])
    assert _apply(work, experiment, part, partial=True).changed is False
    assert _state(work, experiment) == before


def test_a_judged_run_that_is_gone_holds_nobody_up(work: Bench, experiment: Experiment) -> None:
    _run_judge(work, RUBRIC, LexicalJudge(RUBRIC), BatchSize(5))
    work.store.remove_run(stored_runs(work.store, experiment)[0])
    applied = _apply(work, experiment, filled(_export(work, experiment)))
    assert (applied.counted, applied.settled.gone) == (True, 1)
    assert _judged(work.store, experiment) == 11


def test_the_rubric_that_was_applied_last_is_the_one_that_shows(work: Bench, experiment: Experiment) -> None:
    first, second = filled(_export(work, experiment)), filled(_export(work, experiment, rubric=STRICTER))
    _apply(work, experiment, second)
    _apply(work, experiment, first)
    assert current_rubric(work.store, experiment).digest == RUBRIC.digest
    assert leaderboard_of(_look(work, experiment), RUBRIC).judged == 12
    before = _state(work, experiment)
    again = _apply(work, experiment, second)
    assert (again.changed, _state(work, experiment)) == (False, before)
    assert _waiting(work, experiment, "ana") == _waiting(work, experiment, "ana", STRICTER) == 0


class Echo:
    """A judge that gives back what it was made with."""

    identity = JudgeName("echo")

    def __init__(self, answer: Callable[[FILE], FILE]) -> None:
        self._answer = answer

    def score(self, file: FILE) -> FILE:
        return self._answer(file)


def test_a_judge_answers_for_its_own_batch_alone(work: Bench, experiment: Experiment) -> None:
    anas = filled(_export(work, experiment))
    for answer in ({}, anas, {"batch": anas["batch"]}):
        with pytest.raises(JudgeFailed, match="is not for the batch that it was given"):
            _run_judge(work, RUBRIC, Echo(lambda _, given=answer: given), BatchSize(1))  # type: ignore[misc]
    assert _judged(work.store, experiment) == 0


def test_what_a_judge_gave_is_kept_when_it_can_not_be_applied(work: Bench, experiment: Experiment) -> None:
    def forgetful(file: FILE) -> FILE:
        scored = filled(file)
        scored["items"][3]["scores"] = dict.fromkeys(scored["items"][3]["scores"])
        return scored

    with pytest.raises(JudgeFailed, match="not filled in"):
        _run_judge(work, RUBRIC, Echo(forgetful), BatchSize(1))
    [kept] = (work.context.settings.home / "judged").glob("*.json")
    assert _apply(work, experiment, read_judge_file(kept), partial=True).counted
    assert _judged(work.store, experiment) == 11


@pytest.mark.parametrize("writes", range(3))
def test_an_apply_that_breaks_off_is_finished_by_the_same_file(
    work: Bench, experiment: Experiment, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    """Before the batch has its scores, before the runs have them, and before the batch says that they do."""
    file = filled(_export(work, experiment))
    left = iter(range(writes))

    def breaking_off(write: Callable[..., Any]) -> Callable[..., Any]:
        def breaks_off(*given: Any, **named: Any) -> Any:
            if next(left, None) is None:
                raise TrackingError("the plug was pulled")
            return write(*given, **named)

        return breaks_off

    with monkeypatch.context() as patched:
        api = type(work.store._api)
        for name in ("log_batch", "extend_runs"):
            patched.setattr(api, name, breaking_off(getattr(api, name)))
        with pytest.raises(TrackingError):
            _apply(work, experiment, file)
    assert _apply(work, experiment, file).changed  # the runs and what the batch says are written in one transaction
    assert _judged(work.store, experiment) == 12
    assert leaderboard_of(_look(work, experiment), RUBRIC).pending == 0
    [kept] = applied_batches(work.store, batch_runs(work.store, experiment), RUBRIC.digest)
    assert {v.slot.slot: v.scores for v in kept.verdicts} == {i["slot"]: i["scores"] for i in file["items"]}


def test_a_run_that_is_gone_is_found_before_anything_is_written(
    work: Bench, experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = filled(_export(work, experiment))
    iter_runs = RunStore.iter_runs
    with monkeypatch.context() as patched:
        patched.setattr(RunStore, "iter_runs", lambda *given, **named: islice(iter_runs(*given, **named), 5))
        with pytest.raises(StoredDataDamaged, match="gone from MLflow"):
            _apply(work, experiment, file)
    file["items"][0]["scores"]["tone"] = 3  # still free to change: nothing was kept
    assert _apply(work, experiment, file).changed is True


def test_provisional_scores_leave_a_cell_pending_and_its_metrics_alone(work: Bench, experiment: Experiment) -> None:
    _run_judge(work, RUBRIC, LexicalJudge(RUBRIC), BatchSize(5))
    for run in stored_runs(work.store, experiment):
        assert run.tags["judge_pending"] == "true"
        assert "composite" not in run.metrics
        assert 2 <= run.metrics["judge/lexical/composite"] <= 17
    assert leaderboard_of(_look(work, experiment), RUBRIC).provisional is True


def test_a_provisional_judge_with_another_rubric_does_not_hide_counted_scores(
    work: Bench, experiment: Experiment
) -> None:
    _apply(work, experiment, filled(_export(work, experiment)))
    _run_judge(work, STRICTER, LexicalJudge(STRICTER), BatchSize(5))
    assert current_rubric(work.store, experiment).digest == RUBRIC.digest
    assert leaderboard_of(_look(work, experiment), RUBRIC).provisional is False


def test_an_overruled_flag_counts_and_is_remembered(work: Bench, experiment: Experiment) -> None:
    file = filled(_export(work, experiment))
    for item in file["items"]:
        item["flags"]["overlong"] = True
    assert _apply(work, experiment, file).overruled == len(file["items"])
    assert all(run.metrics["overlong"] == 1 for run in stored_runs(work.store, experiment))


def test_texts_scales_and_what_code_checked_are_held_against_the_batch(work: Bench, experiment: Experiment) -> None:
    good = filled(_export(work, experiment))
    first = good["items"][0]
    for spoiled, word in (
        ({**good, "rubric": {**good["rubric"], "text": "Give everything a 5."}}, "rubric.text"),
        ({**good, "scales": {}}, "scales"),
        ({**good, "by": "me"}, "'by'"),
        ({**good, "items": [{**first, "scenario": "Another."}, *good["items"][1:]]}, "scenario"),
        ({**good, "items": [{**first, "checked": {}}, *good["items"][1:]]}, "checked"),
        ({**good, "items": [{**first, "flag": {"overlong": True}}, *good["items"][1:]]}, "'flag'"),
    ):
        with pytest.raises(InvalidInput, match=word):
            _apply(work, experiment, spoiled)
    assert _judged(work.store, experiment) == 0


class TestDrift:
    """A batch that drifts is kept and shown, and does not count."""

    @pytest.fixture
    def experiment(self, collected: Callable[..., Experiment]) -> Experiment:
        return collected(n_scenarios=4)

    def test_a_faithful_judge_counts(self, work: Bench, experiment: Experiment) -> None:
        applied = _apply(work, experiment, filled(_export(work, experiment, sample=1, anchors=True)))
        assert (applied.counted, applied.quarantine, applied.drift.assessable) == (True, "", True)
        assert all(found.kappa.value == 1 for found in applied.drift.criteria.values())
        assert leaderboard_of(_look(work, experiment), RUBRIC).kappas["ana"] == dict.fromkeys(RUBRIC.criteria, 1.0)

    def test_a_shifted_one_is_in_quarantine_until_somebody_accepts_it(
        self, work: Bench, experiment: Experiment
    ) -> None:
        file = _shifted(_export(work, experiment, sample=1, anchors=True), "tone", 1)
        applied = _apply(work, experiment, file)
        assert not applied.counted
        assert applied.quarantine.startswith("tone: scores are")
        assert "relevance" not in applied.quarantine
        assert _judged(work.store, experiment) == 0
        for run in stored_runs(work.store, experiment):
            assert run.tags["judge_pending"] == "true"
            assert "judge/ana/tone" in run.metrics, "kept and shown"
        assert _waiting(work, experiment, "ana") == 24, "to be scored anew"
        again = _apply(work, experiment, file)
        assert (again.changed, again.counted) == (False, False)
        accepted = _apply(work, experiment, file, accept_drift="ben: the rubric was unclear about tone")
        assert accepted.counted
        assert accepted.changed
        assert _judged(work.store, experiment) == 24

    def test_scoring_anew_takes_the_place_of_what_is_in_quarantine(self, work: Bench, experiment: Experiment) -> None:
        _apply(work, experiment, _shifted(_export(work, experiment, sample=1, anchors=True), "tone", 2))
        applied = _apply(work, experiment, filled(_export(work, experiment, sample=1, anchors=True)))
        assert (applied.counted, applied.replaced) == (True, 0)
        assert _judged(work.store, experiment) == 24

    def test_counted_scores_are_not_lost_to_a_replacement_that_drifts(
        self, work: Bench, experiment: Experiment
    ) -> None:
        first, second = (_export(work, experiment, sample=1, anchors=True) for _ in range(2))
        _apply(work, experiment, filled(first))
        means = [run.metrics["tone"] for run in stored_runs(work.store, experiment)]
        assert not _apply(work, experiment, _shifted(second, "tone", 2), replace=True).counted
        assert _judged(work.store, experiment) == 24
        assert [run.metrics["tone"] for run in stored_runs(work.store, experiment)] == means

    def test_scores_that_count_no_more_leave_the_leaderboard(self, work: Bench, experiment: Experiment) -> None:
        """Taken at first, because too few anchors were scored to tell; the whole file then drifts."""
        whole = _shifted(_export(work, experiment, sample=1, anchors=True), "tone", 2)
        part = {**whole, "items": [dict(item) for item in whole["items"]]}
        slots = _slots_of(work, experiment, whole["batch"])
        for item in part["items"]:
            if not slots[item["slot"]]:
                item["scores"] = dict.fromkeys(item["scores"])
        assert _apply(work, experiment, part, partial=True).counted
        assert _judged(work.store, experiment) == 24
        assert not _apply(work, experiment, whole).counted
        assert _judged(work.store, experiment) == 0
        assert leaderboard_of(_look(work, experiment), RUBRIC).judged == 0
        assert _waiting(work, experiment, "ana") == 24

    def test_anchors_of_a_batch_in_quarantine_are_not_borrowed(self, work: Bench, experiment: Experiment) -> None:
        _apply(work, experiment, _shifted(_export(work, experiment, sample=1, anchors=True), "tone", 2))
        now = (work.context.new_id, work.now_ms)
        extent = BatchSize(1, limit=7)
        few = export_batch(work.store, experiment, RUBRIC, JudgeName("ana"), 3, *now, extent, SUITE.anchors).file
        applied = _apply(work, experiment, filled(few))
        assert (applied.drift.borrowed, applied.counted) == (0, True)

    def test_a_small_batch_borrows_the_judges_earlier_anchors(self, work: Bench, experiment: Experiment) -> None:
        gold = SUITE.anchors
        for number, known in enumerate((0, 1)):
            file = export_batch(
                *(work.store, experiment, RUBRIC, JudgeName("ana"), number, work.context.new_id, work.now_ms),
                BatchSize(1, limit=7),
                gold,
            ).file
            applied = _apply(work, experiment, filled(file))
            assert applied.drift.assessable is bool(known)
            assert applied.drift.borrowed == 7 * known
            assert applied.counted

    def test_private_anchors_are_looked_up_here_and_stored_nowhere(self, work: Bench, experiment: Experiment) -> None:

        own = [replace(anchor, id=f"own-{anchor.id}", private=True) for anchor in SUITE.anchors]
        now = (work.context.new_id, work.now_ms)
        file = export_batch(work.store, experiment, RUBRIC, JudgeName("ana"), 0, *now, BatchSize(1), own).file
        [run] = batch_runs(work.store, experiment)
        manifest = work.store.text(run, "manifest.json") or ""
        assert '"reference": {}' in manifest
        assert '"relevance"' not in manifest
        for missing in ((), [replace(anchor, candidate="Another text.") for anchor in own]):
            with pytest.raises(InvalidInput, match="16 anchors from a team's own file, which is not on this machine"):
                apply_file(work.store, experiment, filled(file), work.now_ms, ApplyOptions(), missing)
        assert _judged(work.store, experiment) == 0
        here = apply_file(work.store, experiment, filled(file), work.now_ms, ApplyOptions(), own)
        assert here.drift.assessable


def test_the_file_is_read_as_it_was_written(work: Bench, experiment: Experiment, tmp_path: Path) -> None:
    from tipbench.core.untrusted import json_text

    path = tmp_path / "judge.json"
    file = filled(_export(work, experiment))
    path.write_text(json_text({"$schema": "./judge.schema.json", **file}), encoding="utf-8")
    assert _apply(work, experiment, read_judge_file(path)).counted


class TestDescriptions:
    """What MLflow's pages show of a run follows its scores."""

    def test_scores_that_come_and_change_are_described(self, work: Bench, experiment: Experiment) -> None:
        assert {_summary(run) for run in stored_runs(work.store, experiment)} == {"**Not judged yet**: 5 candidates."}
        file = filled(_export(work, experiment, "ana"))
        _apply(work, experiment, file)
        runs = stored_runs(work.store, experiment)
        for run in runs:
            assert _summary(run).startswith(f"**Composite {run.metrics['composite']:.2f}** on a scale from 2 to 17")
            assert "**Candidates**\n\n1. " in run.tags[DESCRIPTION]
        steps = [run.steps for run in runs]
        assert not _apply(work, experiment, file).changed, "the same again writes nothing"
        assert [run.steps for run in stored_runs(work.store, experiment)] == steps
        _apply(work, experiment, filled(_export(work, experiment, "ben")))
        assert all("judged by ana and ben." in _summary(run) for run in stored_runs(work.store, experiment))
        [batch, _] = batch_runs(work.store, experiment)
        assert _summary(batch).startswith("**Judged by ana** on 1970-01-01: 60 candidates, mean composite ")

    def test_own_words_stay_and_an_earlier_versions_runs_get_their_scores(
        self, work: Bench, experiment: Experiment
    ) -> None:
        store = work.store
        first, second, third, *_ = stored_runs(store, experiment)
        store.extend_run(first, {DESCRIPTION: f"Odd!\n\n{first.tags[DESCRIPTION]}\n\nAsk Lena."})
        store.extend_run(second, {DESCRIPTION: "All my own words."})
        before = store.runs(experiment, {})
        without = {run.run_id: run for run in before}
        without[third.run_id] = third._replace(
            tags={key: value for key, value in third.tags.items() if key != DESCRIPTION}
        )
        _apply(work, experiment, filled(_export(work, experiment)))
        after = {run.run_id: run.tags[DESCRIPTION] for run in stored_runs(store, experiment)}
        assert after[first.run_id].startswith("Odd!\n\n**Composite")
        assert after[first.run_id].endswith("\n\nAsk Lena.")
        assert after[second.run_id] == "All my own words."
        changes, _, _ = changes_for(
            without, applied_batches(store, batch_runs(store, experiment), RUBRIC.digest), RUBRIC
        )
        [described] = [change.tags[DESCRIPTION] for change in changes if change.run.run_id == third.run_id]
        assert described.startswith("**Composite")
        assert "Candidates" not in described

    def test_scores_on_hold_are_shown_as_such(self, work: Bench, experiment: Experiment) -> None:
        file = filled(_export(work, experiment, anchors=True))
        for item in file["items"]:
            item["scores"] = dict.fromkeys(item["scores"], 5)
        _apply(work, experiment, file)
        run = stored_runs(work.store, experiment)[0]
        assert _summary(run).startswith("**Not judged yet**: these scores don't count.")
        assert "| ana (on hold) | 5.00 |" in _summary(run)
        [batch] = batch_runs(work.store, experiment)
        assert "The scores are **on hold**, so they don't count" in _summary(batch)
        _apply(work, experiment, file, accept_drift="ben: <all> were good")
        [batch] = batch_runs(work.store, experiment)
        assert _summary(batch).endswith("accepted: ben: &lt;all&gt; were good.")
        assert _summary(stored_runs(work.store, experiment)[0]).startswith("**Composite ")


def _summary(run: StoredRun) -> str:
    return summary_of(run.tags[DESCRIPTION]) or ""


def test_scores_that_another_process_writes_meanwhile_do_not_stay(
    work: Bench, experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An apply was killed; while a corrected file is applied, a reader completes the first one, by a later clock."""
    file = _export(work, experiment, sample=1)
    with monkeypatch.context() as patched:
        patched.setattr(RunStore, "extend_runs", _killed)
        with pytest.raises(KeyboardInterrupt):
            _apply(work, experiment, filled(file))
    other = RunStore(EmbeddedMlflow(work.store.address))
    completed: list[bool] = []

    def assess_slowly(*given: Any) -> Any:
        completed.append(finish_applying(other, experiment, work.now_ms + 60_000))
        return assess(*given)

    monkeypatch.setattr("tipbench.bench.judge.apply.assess", assess_slowly)
    corrected = _shifted(file, "tone", -2)
    _apply(work, experiment, corrected, replace=True)
    other.close()
    assert completed == [True]
    tones = {item["scores"]["tone"] for item in corrected["items"]}
    assert {run.metrics["tone"] for run in stored_runs(work.store, experiment)} == tones


def _killed(*_: Any, **__: Any) -> int:
    raise KeyboardInterrupt
