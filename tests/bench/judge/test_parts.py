"""A folder for an agent: small parts, nothing twice, and scores that come in part by part."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.integration.filling import faithful_scores
from tipbench.bench.bench import Bench
from tipbench.bench.judge.parts import part_data, split
from tipbench.bench.tracking.interface import Experiment
from tipbench.core.errors import InvalidInput, JudgeFileError

SCALES = dict.fromkeys(("relevance", "actionability", "tone"), (1, 5))


@given(st.lists(st.tuples(st.sampled_from(["a", "b" * 9_000, "c" * 30_000]), st.text(max_size=50)), max_size=90))
def test_parts_keep_every_item_in_order_and_are_small(texts: list[tuple[str, str]]) -> None:
    items = [
        {"slot": str(number), "scenario": scenario, "candidate": text, "checked": {}}
        for number, (scenario, text) in enumerate(texts)
    ]
    parts = split(items)
    assert [item for part in parts for item in part] == items
    for part in parts:
        data = part_data(part)
        assert 1 <= len(part) <= 20
        size = sum(map(len, data["situations"].values())) + sum(len(item["text"]) for item in data["items"])
        assert size <= 24_000 or len(part) == 1
        assert len(data["situations"]) == len({item["scenario"] for item in part}), "each situation once"


@pytest.fixture
def exported(work: Bench, experiment: Experiment, tmp_path: Path) -> Path:
    with Bench("x", context=work.context) as bench:
        bench.export_folder(tmp_path / "folder", "claude-code-2.1")
    return tmp_path / "folder"


def write_scores(folder: Path, *numbers: str) -> None:
    for path in sorted((folder / "parts").iterdir()):
        if not numbers or path.stem in numbers:
            items = json.loads(path.read_text())["items"]
            scores = {item["slot"]: faithful_scores(item["text"], SCALES) for item in items}
            (folder / "scores" / path.name).write_text(json.dumps(scores))


def test_everything_pending_is_in_it_and_nothing_that_tells(exported: Path, telling: list[str]) -> None:
    parts = [json.loads(path.read_text()) for path in sorted((exported / "parts").iterdir())]
    assert sum(len(part["items"]) for part in parts) == 12 * 5 + 16 + 8
    files = [path for path in exported.rglob("*") if path.is_file()]
    everything = "\n".join(f"{path.relative_to(exported)}\n{path.read_text()}" for path in files)
    assert [word for word in telling if word in everything.lower()] == []
    assert "# Judge texts by the rubric" in everything
    assert "nothing inside a text" in everything.lower()


def test_it_is_applied_whole(work: Bench, exported: Path) -> None:
    write_scores(exported)
    with Bench("x", context=work.context) as bench:
        applied = bench.apply(exported)
        assert (applied.judge, applied.candidates, applied.left, applied.counted) == ("claude-code-2.1", 60, 0, True)
        assert not bench.apply(exported).changed, "the same again changes nothing"


def test_it_is_applied_part_by_part_and_says_what_is_missing(
    work: Bench, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []
    monkeypatch.setattr(work.context.observer, "note", notes.append, raising=False)
    write_scores(exported, "01")
    with Bench("x", context=work.context) as bench:
        first = bench.apply(exported)
        assert 0 < first.candidates < 60
        assert "64 of 84 items have no scores yet" in notes[-1]
        write_scores(exported)
        whole = bench.apply(exported)
    assert (whole.candidates, whole.left) == (60, 0)


def test_what_can_not_be_used_is_named_and_stays(work: Bench, exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    monkeypatch.setattr(work.context.observer, "note", notes.append, raising=False)
    write_scores(exported)
    path = exported / "scores" / "01.json"
    scores = json.loads(path.read_text())
    slot = next(iter(scores))
    scores[slot]["tone"] = 9
    path.write_text(f"Here are my scores:\n```json\n{json.dumps(scores)}\n```")
    (exported / "scores" / "02.json").write_text("I am sorry, I can't do that.")
    before = path.read_text()
    with Bench("x", context=work.context) as bench:
        applied = bench.apply(exported)
    assert any(f"slot {slot}: scores.tone: 9 is outside 1–5" in note for note in notes)
    assert any("02.json: no scores of this batch were found in it" in note for note in notes)
    assert applied.candidates < 60
    assert path.read_text() == before


def test_a_folder_with_nothing_to_use_is_refused_and_changes_nothing(
    work: Bench, exported: Path, tmp_path: Path
) -> None:
    with Bench("x", context=work.context) as bench:
        with pytest.raises(JudgeFileError, match="has no scores that can be applied; nothing was written"):
            bench.apply(exported)
        with pytest.raises(InvalidInput, match="was not written by 'judge --export DIR --for agent'"):
            bench.apply(tmp_path)
        with pytest.raises(InvalidInput, match="already exists and may contain scores"):
            bench.export_folder(exported, "claude-code-2.1")


def test_scores_alone_are_enough_for_a_file(work: Bench, collected: Callable[..., Experiment], tmp_path: Path) -> None:
    collected()
    with Bench("x", context=work.context) as bench:
        bench.export(tmp_path / "judge.json", "lena")
        items = json.loads((tmp_path / "judge.json").read_text())["items"]
        scores = {item["slot"]: faithful_scores(item["candidate"], SCALES) for item in items}
        alone = tmp_path / "scores.json"
        some = dict(list(scores.items())[:3])
        alone.write_text(json.dumps(some))
        with pytest.raises(JudgeFileError, match=f"{len(items) - 3} of {len(items)} items have no scores, slot "):
            bench.apply(alone)
        alone.write_text(json.dumps({"zzzzzzzz": next(iter(scores.values()))}))
        with pytest.raises(InvalidInput, match="no batch of this experiment has a slot 'zzzzzzzz'"):
            bench.apply(alone)
        alone.write_text(json.dumps(scores))
        assert bench.apply(alone).counted
