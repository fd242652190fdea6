"""The judging desk, over a real store."""

import json
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.integration.command import tipbench
from tests.integration.filling import filled
from tests.server.views.conftest import EXPERIMENT
from tipbench.bench.judge.apply import apply_file
from tipbench.bench.judge.judges.webhook import batch_key, sign
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import InvalidInput, JudgeFileError, NotFound, Problems, StoredDataDamaged
from tipbench.core.untrusted import json_text
from tipbench.server.views.batches import Drafts
from tipbench.server.views.boards import Boards
from tipbench.server.views.judging import JudgingDesk
from tipbench.server.views.snapshots import SnapshotMemoryCache
from tipbench.server.views.store_provider import StoreProvider


def started(desk: JudgingDesk, judge: str = "person") -> str:
    batch = desk.next_batch(judge)
    assert batch is not None
    return batch.batch


def score_all(desk: JudgingDesk, batch: str, judge: str = "person") -> dict[str, Any]:
    """As a faithful judge, item by item and field by field."""
    scored = filled(desk.file(batch, judge))
    for item in scored["items"]:
        for name, score in item["scores"].items():
            desk.save(batch, judge, item["slot"], {"scores": {name: score}})
    return scored


def _runs(desk: JudgingDesk, batch: str) -> set[str]:
    return {slot.run_id for slot in desk._batches.find(batch, None).batch.slots if slot.run_id}


def test_what_waits_is_exported_once_and_gone_on_with(desk: JudgingDesk) -> None:
    before = desk.waiting("person")
    assert before.open == [] or not before.open
    assert before.candidates == 16
    batch = started(desk)
    assert started(desk) == batch
    after = desk.waiting("person")
    assert [one.batch for one in after.open] == [batch]
    assert after.candidates == 0


def test_all_items_scored_one_by_one_change_the_leaderboard(desk: JudgingDesk, boards: Boards) -> None:
    assert boards.leaderboard(EXPERIMENT).judged == 0
    batch = started(desk)
    score_all(desk, batch)
    waiting = desk.waiting("person").open[0]
    assert (waiting.done, waiting.items) == (waiting.items, len(desk.sheet(batch, "person").items))
    applied = desk.submit(batch, "person")
    assert applied.counted
    assert applied.drift.assessable
    assert boards.leaderboard(EXPERIMENT).judged == 16
    assert boards.experiments()[0].pending == 0
    assert desk.waiting("person").candidates == 0
    assert desk.next_batch("person") is None
    assert desk.waiting("anna").candidates == 0
    assert desk.waiting("anna", EXPERIMENT).candidates == 16  # a second opinion, for whoever asks for it


def test_what_was_given_outlives_the_server(
    desk: JudgingDesk, stores: StoreProvider, snapshots: SnapshotMemoryCache, drafts: Drafts
) -> None:
    batch = started(desk)
    slot = desk.sheet(batch, "person").items[0].slot
    desk.save(batch, "person", slot, {"scores": {"tone": 4}, "note": "kind"})
    desk.save(batch, "person", slot, {"flags": {"overlong": True}})
    again = JudgingDesk(stores, snapshots, drafts).sheet(batch, "person").items[0].given
    assert (again.scores["tone"], again.scores["relevance"], again.flags["overlong"], again.note) == (
        4,
        None,
        True,
        "kind",
    )


def test_a_field_can_be_taken_back(desk: JudgingDesk) -> None:
    batch = started(desk)
    slot = desk.sheet(batch, "person").items[0].slot
    desk.save(batch, "person", slot, {"scores": {"tone": 4}})
    assert desk.save(batch, "person", slot, {"scores": {"tone": None}}).given.scores["tone"] is None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"scores": {"tone": 6}}, "outside 1–5"),
        ({"scores": {"tone": True}}, "not a whole number"),
        ({"scores": {"tone": "4"}}, "not a whole number"),
        ({"scores": {"charm": 4}}, "not a criterion"),
        ({"flags": {"overlong": 1}}, "neither true"),
        ({"flags": {"purple": True}}, "not a flag"),
        ({"note": 7}, "note"),
        ({"note": "x" * 4001}, "note"),
        ({"model": "m"}, "unknown field"),
        ({"scores": [4]}, "must be an object"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused_whole(desk: JudgingDesk, change: dict[str, Any], told: str) -> None:
    batch = started(desk)
    item = desk.sheet(batch, "person").items[0]
    with pytest.raises(Problems, match=told):
        desk.save(batch, "person", item.slot, {"scores": {"relevance": 3}, **change} if "note" in change else change)
    assert desk.sheet(batch, "person").items[0].given == item.given


def test_an_unfinished_batch_is_not_taken(desk: JudgingDesk, boards: Boards) -> None:
    batch = started(desk)
    with pytest.raises(JudgeFileError, match="not filled in"):
        desk.submit(batch, "person")
    assert boards.leaderboard(EXPERIMENT).judged == 0


def test_after_handing_in_nothing_changes_any_more(desk: JudgingDesk) -> None:
    batch = started(desk)
    score_all(desk, batch)
    first = desk.submit(batch, "person")
    slot = desk.sheet(batch, "person").items[0].slot
    with pytest.raises(InvalidInput, match="handed in"):
        desk.save(batch, "person", slot, {"scores": {"tone": 1}})
    again = desk.submit(batch, "person")
    assert again.drift == first.drift
    assert not again.changed
    assert desk.report(batch, "person").counted


class Killed(BaseException):
    """What a SIGKILL is to the code: nothing after it is done."""


@pytest.fixture
def cut_off(desk: JudgingDesk, monkeypatch: pytest.MonkeyPatch) -> str:
    """A batch that was handed in, and the server killed when its scores stood and its runs did not say so yet."""
    batch = started(desk)
    score_all(desk, batch)

    def killed(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(RunStore, "extend_runs", killed)
        with pytest.raises(Killed):
            desk.submit(batch, "person")
    return batch


def restarted(stores: StoreProvider, drafts: Drafts) -> tuple[JudgingDesk, Boards]:
    """What a server has that comes after it."""
    snapshots = SnapshotMemoryCache(stores)
    return JudgingDesk(stores, snapshots, drafts), Boards(stores, snapshots)


def test_a_hand_in_that_was_cut_off_is_ended_by_handing_in_again(
    cut_off: str, stores: StoreProvider, drafts: Drafts
) -> None:
    desk, boards = restarted(stores, drafts)
    assert desk.submit(cut_off, "person").counted
    assert boards.leaderboard(EXPERIMENT).judged == 16
    assert desk.next_batch("person") is None, "nobody gets the same texts again"


def test_a_hand_in_that_was_cut_off_is_ended_by_whoever_looks_next(
    cut_off: str, stores: StoreProvider, drafts: Drafts, caplog: pytest.LogCaptureFixture
) -> None:
    desk, boards = restarted(stores, drafts)
    assert boards.leaderboard(EXPERIMENT).judged == 16
    assert caplog.messages == [
        f"The scores of batch {cut_off} were not written to all runs, because the process was interrupted; they are "
        "now."
    ]
    assert desk.next_batch("person") is None
    assert desk.report(cut_off, "person").counted
    caplog.clear()
    restarted(stores, drafts)[1].leaderboard(EXPERIMENT)
    assert caplog.messages == []


@pytest.mark.parametrize("words", [("compare", "--format", "json"), ("judge", "--export", "next.json")])
def test_a_hand_in_that_was_cut_off_is_ended_by_a_command(
    cut_off: str, words: tuple[str, ...], stores: StoreProvider, drafts: Drafts, address: str, tmp_path: Path
) -> None:
    done = tipbench(*words, "--experiment", EXPERIMENT, "--mlflow-url", address, cwd=tmp_path)
    if words[0] == "compare":
        assert json.loads(done.out)["cells"] == {"judged": 16, "pending": 0, "failed": 0, "missing": 0}
    else:
        assert done.status == 2, "nothing is left to be judged"
    assert restarted(stores, drafts)[1].leaderboard(EXPERIMENT).judged == 16


def test_another_judges_batch_is_as_one_that_is_not_there(desk: JudgingDesk) -> None:
    batch = started(desk)
    with pytest.raises(NotFound) as of_another:
        desk.sheet(batch, "anna")
    with pytest.raises(NotFound) as of_nobody:
        desk.sheet("0" * 16, "anna")
    assert str(of_another.value).replace(batch, "") == str(of_nobody.value).replace("0" * 16, "")


def test_a_second_judge_is_asked_only_by_name_of_the_experiment(desk: JudgingDesk) -> None:
    batch = started(desk)
    score_all(desk, batch)
    desk.submit(batch, "person")
    assert desk.next_batch("anna") is None
    assert desk.next_batch("anna", EXPERIMENT) is not None
    assert [one.done for one in desk.waiting("anna").open] == [0]


def test_a_batch_in_a_file_is_not_offered_again_until_the_judge_takes_it_over(
    desk: JudgingDesk, address: str, tmp_path: Any
) -> None:
    file = tmp_path / "judge.json"
    at = ("judge", "--experiment", EXPERIMENT, "--mlflow-url", address)
    assert tipbench(*at, "--export", str(file), "--items", "20").status == 0
    in_file = json.loads(file.read_text())
    waiting = desk.waiting("person")
    assert [(one.batch, one.items, one.exported) for one in waiting.open] == [(in_file["batch"], 20, True)]
    assert waiting.candidates == 10, "of 16"
    other = desk.next_batch("person", items=40)
    assert other is not None
    assert other.batch != in_file["batch"]
    assert not _runs(desk, in_file["batch"]) & _runs(desk, other.batch)
    slot = in_file["items"][0]["slot"]
    desk.save(in_file["batch"], "person", slot, {"note": "here instead"})
    assert not any(one.exported for one in desk.waiting("person").open)
    score_all(desk, in_file["batch"])
    assert desk.submit(in_file["batch"], "person").counted
    for item in in_file["items"]:
        item["scores"] = dict.fromkeys(item["scores"], 3)
    file.write_text(json.dumps(in_file))
    again = tipbench(*at, "--apply", str(file))
    assert again.status == 2, "what was scored here is not overwritten by the file"
    assert "have other scores by 'person' already; nothing was written" in again.err


def test_a_lost_file_blocks_nothing(desk: JudgingDesk, address: str, tmp_path: Any) -> None:
    file = tmp_path / "judge.json"
    exported = tipbench("judge", "--experiment", EXPERIMENT, "--mlflow-url", address, "--export", str(file))
    assert exported.status == 0, exported.err
    assert desk.waiting("person").candidates == 0
    assert started(desk) == json.loads(file.read_text())["batch"], "nothing else waits"


def test_a_new_judge_gets_a_small_first_batch_and_is_new_again_after_a_hold(desk: JudgingDesk, address: str) -> None:
    """With enough cells for the second batch to have anchors of its own, whichever are drawn."""
    where = ("--n-tips", "2", "--experiment", EXPERIMENT, "--mlflow-url", address)
    assert tipbench("collect", "--models", "scripted/a,scripted/b", *where).status == 0

    def next_batch(items: int = 20) -> str:
        found = desk.next_batch("person", items=items)
        assert found is not None
        return found.batch

    assert desk.waiting("person").is_new
    first = next_batch()
    score_all(desk, first)
    applied = desk.submit(first, "person")
    assert (applied.candidates, applied.drift.anchors, applied.drift.borrowed) == (6, 12, 0)
    assert not desk.waiting("person").is_new
    second = next_batch(160)
    for item in filled(desk.file(second, "person"))["items"]:
        wrong = {name: 1 if score >= 3 else 5 for name, score in item["scores"].items()}
        desk.save(second, "person", item["slot"], {"scores": wrong})
    held = desk.submit(second, "person")
    assert held.drift.borrowed
    assert held.in_quarantine
    assert desk.waiting("person").is_new
    assert desk.waiting("person").candidates == 42, "what is on hold waits again"


def test_of_two_exports_the_one_that_was_begun_is_gone_on_with(desk: JudgingDesk, address: str, tmp_path: Any) -> None:
    first = started(desk)
    slot = desk.sheet(first, "person").items[0].slot
    desk.save(first, "person", slot, {"scores": {"tone": 3, "relevance": 3, "actionability": 3}})
    export = ("judge", "--experiment", EXPERIMENT, "--mlflow-url", address, "--export", str(tmp_path / "j.json"))
    assert tipbench(*export).status == 0
    assert [one.batch for one in desk.waiting("person").open] == [first]
    score_all(desk, first)
    desk.submit(first, "person")
    assert not desk.waiting("person").open  # all of the other's candidates have their scores


def test_a_drifted_batch_is_in_quarantine_until_an_admin_accepts_it(desk: JudgingDesk, boards: Boards) -> None:
    batch = started(desk)
    for item in desk.sheet(batch, "person").items:
        desk.save(batch, "person", item.slot, {"scores": dict.fromkeys(item.given.scores, 5)})
    assert not desk.submit(batch, "person").counted
    assert boards.leaderboard(EXPERIMENT).judged == 0
    accepted = desk.accept(batch, "person", "the anchors are too strict")
    assert accepted.accepted == "person: the anchors are too strict"
    assert desk.report(batch, "person").counted
    assert boards.leaderboard(EXPERIMENT).judged == 16


def test_a_judge_elsewhere_calls_back_with_the_batchs_key(
    desk: JudgingDesk, boards: Boards, stores: StoreProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = started(desk)
    body = json.dumps(filled(desk.file(batch, "person"))).encode()
    now = int(stores.clock())

    def call(key: str, at: int = now, content: bytes = body, to: str = batch) -> Any:
        return desk.call_back(to, str(at), sign(key, at, content), content)

    assert call("anything") is None  # no secret is set
    monkeypatch.setenv("TIPBENCH_JUDGE_SECRET", "s3cret" * 5)
    key = batch_key("s3cret" * 5, batch)
    assert call("wrong key") is None
    assert call(key, at=now - 1000) is None
    assert desk.call_back(batch, str(now), sign(key, now, b"{}"), body) is None
    assert call(key, to="0" * 16) is None
    assert boards.leaderboard(EXPERIMENT).judged == 0
    assert call(key).counted
    assert boards.leaderboard(EXPERIMENT).judged == 16
    assert not call(key).changed


def test_a_report_stays_as_it_was_told(desk: JudgingDesk) -> None:
    """Whatever the same judge hands in later, and wherever the anchors' file has gone."""
    batch = started(desk)
    score_all(desk, batch)
    told = desk.submit(batch, "person")
    again = desk.report(batch, "person")
    assert again.drift == told.drift
    compared = ("judge", "batch", "candidates", "runs", "left", "overruled", "quarantine", "accepted", "counted")
    assert [getattr(again, name) for name in compared] == [getattr(told, name) for name in compared]


def test_the_sheet_explains_every_level(desk: JudgingDesk) -> None:
    sheet = desk.sheet(started(desk), "person")
    assert [one.name for one in sheet.criteria] == ["relevance", "actionability", "tone"]
    for criterion in sheet.criteria:
        assert set(criterion.levels) == set(range(criterion.low, criterion.high + 1))
        assert all(criterion.levels.values())
    assert "Calibration situations".lower() in sheet.introduction.lower()
    assert [flag.checked_by_code for flag in sheet.flags] == [True, True]


def test_nothing_on_the_desk_names_a_model_or_the_experiment(desk: JudgingDesk) -> None:
    batch = started(desk)
    told = repr(desk.sheet(batch, "person")) + json.dumps(desk.file(batch, "person")) + repr(desk.waiting("person"))
    assert EXPERIMENT not in told
    assert "scripted" not in told


def test_before_the_first_run_nothing_waits(tmp_path: Any, stores: StoreProvider, drafts: Drafts) -> None:
    nowhere = StoreProvider(f"sqlite:///{tmp_path / 'none.db'}", stores.settings, stores.clock, stores.new_id)
    desk = JudgingDesk(nowhere, SnapshotMemoryCache(nowhere), drafts)
    assert not desk.waiting("person").open
    assert desk.next_batch("person") is None
    with pytest.raises(NotFound):
        desk.sheet("x", "person")


def test_what_somebody_else_has_just_judged_is_no_error_that_names_the_experiment(
    desk: JudgingDesk, snapshots: SnapshotMemoryCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = started(desk, "anna")
    before = snapshots.find(EXPERIMENT)
    desk.submit_file(batch, "anna", json_text(filled(desk.file(batch, "anna"))).encode())
    monkeypatch.setattr(snapshots, "get", lambda *_: before)
    assert desk.next_batch("anna") is None


def test_an_experiment_that_can_not_be_read_holds_up_no_other(
    desk: JudgingDesk, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    done = tipbench(
        *("collect", "--models", "scripted/a", "--prompts", "v1", "--n-tips", "2", "--n-scenarios", "1"),
        *("--experiment", "tip-bench-damaged", "--mlflow-url", address),
    )
    assert done.status == 0, done.err
    with closing(sqlite3.connect(address.removeprefix("sqlite:///"))) as database, database:
        database.execute(
            "UPDATE tags SET value = '99' WHERE key = 'tipbench.schema' AND run_uuid IN (SELECT run_uuid FROM runs "
            "JOIN experiments USING (experiment_id) WHERE experiments.name = 'tip-bench-damaged')"
        )
    assert desk.waiting("anna").candidates == 16
    assert desk.next_batch("anna") is not None
    assert "tip-bench-damaged" in caplog.text
    with pytest.raises(StoredDataDamaged):
        desk.waiting("anna", "tip-bench-damaged")


def test_what_is_wrong_with_a_teams_own_anchors_is_not_told_to_judges(
    desk: JudgingDesk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("- {id: hidden-one, scenario: none, candidate: hidden, scores: {tone: 9}, reason: why}\n")
    monkeypatch.setenv("TIPBENCH_ANCHORS", str(own))
    with pytest.raises(InvalidInput) as told:
        desk.next_batch("anna")
    assert "hidden" not in str(told.value)
    assert str(own) not in str(told.value)
    assert str(own) in caplog.text


def test_what_comes_while_a_batch_is_handed_in_is_handed_in_or_refused(
    desk: JudgingDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = started(desk)
    slot = score_all(desk, batch)["items"][0]["slot"]
    told: list[str] = []

    def save() -> None:
        try:
            desk.save(batch, "person", slot, {"note": "late"})
            told.append("kept")
        except InvalidInput:
            told.append("refused")

    tab = threading.Thread(target=save)

    def slowly(*given: Any) -> Any:
        tab.start()
        tab.join(0.3)
        return apply_file(*given)

    monkeypatch.setattr("tipbench.bench.judge.apply.apply_file", slowly)
    desk.submit(batch, "person")
    tab.join()
    assert told == ["refused"]


def test_a_run_that_was_deleted_meanwhile_takes_no_other_scores_along(desk: JudgingDesk, address: str) -> None:
    batch = started(desk, "anna")
    score_all(desk, batch, "anna")
    with closing(sqlite3.connect(address.removeprefix("sqlite:///"))) as database, database:
        database.execute(
            "UPDATE runs SET lifecycle_stage = 'deleted' WHERE run_uuid = "
            "(SELECT run_uuid FROM tags WHERE key = 'tipbench.kind' AND value = 'cell')"
        )
    assert [one.batch for one in desk.waiting("anna").open] == [batch]
    applied = desk.submit(batch, "anna")
    assert (applied.runs, applied.candidates, applied.left) == (15, 15, 1)
    assert desk.report(batch, "anna").candidates == 15
    assert desk.waiting("anna").open == []
