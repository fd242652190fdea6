"""A judge file that doesn't fit its batch is refused as a whole, with every place that is wrong."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tipbench.bench.judge import verify as verify_module
from tipbench.bench.judge.file import BatchItem, judge_file
from tipbench.bench.judge.verify import read_judge_file, verify
from tipbench.bench.records import Batch, Slot
from tipbench.bench.suites.load import load_suite
from tipbench.bench.suites.rubric import Criterion, Flag, Rubric, RubricFront
from tipbench.core.errors import InvalidInput, JudgeFileError
from tipbench.core.identity import text_digest

RUBRIC = load_suite("tip").rubric
TEXTS = ("Call Anke now.", "Sleep\ud800 \x00 well.", "")
ITEMS = [
    BatchItem(
        Slot(
            slot=f"slot-{n}",
            run_id=f"run-{n}",
            candidate=0,
            digest=text_digest(text),
            scenario_digest=text_digest("Night."),
            flags={"format_ok": True, "overlong": False},
        ),
        "Night.",
        text,
    )
    for n, text in enumerate(TEXTS)
]
BATCH = Batch(
    id="b-1",
    judge="agent",
    provisional=False,
    seed=0,
    rubric_digest=RUBRIC.digest,
    created_ms=0,
    secret="",
    slots=tuple(item.slot for item in ITEMS),
)
File = dict[str, Any]
Damage = Callable[[File], object]


def filled() -> File:
    file = judge_file(BATCH, RUBRIC, ITEMS)
    for item in file["items"]:
        item["scores"] = {"relevance": 3, "actionability": 4, "tone": 5}
    return file


def item(file: File, number: int = 1) -> File:
    found: File = file["items"][number]
    return found


def problems(file: File) -> tuple[str, ...]:
    with pytest.raises(JudgeFileError) as caught:
        verify(file, BATCH, RUBRIC)
    return caught.value.problems


def test_a_file_that_fits_gives_a_verdict_for_every_slot() -> None:
    verdicts = verify(filled(), BATCH, RUBRIC)
    assert [verdict.slot for verdict in verdicts] == list(BATCH.slots)
    assert {verdict.composite for verdict in verdicts} == {3 + 4 + 5 + 2}
    assert all(verdict.overruled == () for verdict in verdicts)


def test_items_may_come_in_any_order_and_through_any_json_tool() -> None:
    file = filled()
    file["items"].reverse()
    again = json.loads(json.dumps(file, sort_keys=True))
    assert sorted(verdict.slot.slot for verdict in verify(again, BATCH, RUBRIC)) == ["slot-0", "slot-1", "slot-2"]


def test_a_judge_may_overrule_a_flag_and_that_is_remembered() -> None:
    file = filled()
    item(file)["flags"] = {"format_ok": False, "overlong": False}
    verdict = verify(file, BATCH, RUBRIC)[1]
    assert verdict.flags == {"format_ok": False, "overlong": False}
    assert verdict.overruled == ("format_ok",)
    assert verdict.composite == 12


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda f: item(f).update(slot="slot-9"), ["slot slot-1: is missing", "items[1].slot: 'slot-9' is not a slot"]),
        (lambda f: item(f).update(slot="slot-0"), ["slot slot-1: is missing", *["slot-0 stands 2 times"] * 2]),
        (lambda f: item(f).update(slot=1), ["slot slot-1: is missing", "items[1].slot: None is not a slot"]),
        (lambda f: f["items"].append(copy.deepcopy(item(f))), ["slot-1 stands 2 times"] * 2),
        (lambda f: f["items"].pop(1), ["slot slot-1: is missing"]),
        (lambda f: f["items"].insert(0, None), ["items[0].slot: None is not a slot"]),
        (lambda f: item(f)["scores"].update(tone=0), ["items[1] (slot slot-1): scores.tone: 0 is outside 1–5"]),
        (lambda f: item(f)["scores"].update(tone=6), ["scores.tone: 6 is outside 1–5"]),
        (lambda f: item(f)["scores"].update(tone=-(10**30)), ["scores.tone: -1000000"]),
        (lambda f: item(f)["scores"].update(tone=True), ["scores.tone: True is not a whole number"]),
        (lambda f: item(f)["scores"].update(tone=4.0), ["scores.tone: 4.0 is not a whole number"]),
        (lambda f: item(f)["scores"].update(tone=float("nan")), ["scores.tone: nan is not a whole number"]),
        (lambda f: item(f)["scores"].update(tone="4"), ["scores.tone: '4' is not a whole number"]),
        (lambda f: item(f)["scores"].update(tone="\x1b[2J"), ["scores.tone: '\\x1b[2J' is not a whole number"]),
        (lambda f: item(f)["scores"].update(tone=None), ["scores.tone: is not filled in"]),
        (lambda f: item(f)["scores"].pop("tone"), ["scores.tone: is not filled in"]),
        (lambda f: item(f)["scores"].update(Tone=4), ["scores.'Tone': is not a criterion"]),
        (lambda f: item(f).update(scores=[3, 4, 5]), ["scores: must be an object", *["is not filled in"] * 3]),
        (lambda f: item(f).pop("scores"), ["is not filled in"] * 3),
        (lambda f: item(f).update(candidate="Call Piet."), ["candidate: the text was changed"]),
        (lambda f: item(f).update(candidate=None), ["candidate: the text was changed"]),
        (lambda f: item(f).pop("candidate"), ["candidate: the text was changed"]),
        (lambda f: item(f)["flags"].update(overlong=0), ["flags.overlong: 0 is neither true, false nor null"]),
        (lambda f: item(f)["flags"].update(overlong="no"), ["flags.overlong: 'no' is neither true, false nor null"]),
        (lambda f: item(f)["flags"].update(funny=True), ["flags.'funny': is not a flag"]),
        (lambda f: item(f).update(flags=None), ["flags: must be an object"]),
        (lambda f: item(f).update(note=3), ["note: is not text"]),
        (lambda f: f["rubric"].update(digest="0" * 64), ["rubric.digest: not the rubric"]),
        (lambda f: f.update(rubric="tip-v1"), ["rubric.digest: not the rubric"]),
        (lambda f: f.update(items={"slot-1": 3}), ["items: must be a list"]),
        (lambda f: f.pop("items"), ["items: must be a list"]),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused_with_the_place(damage: Damage, told: list[str]) -> None:
    file = filled()
    damage(file)
    found = problems(file)
    assert len(found) == len(told)
    assert all(part in problem for part, problem in zip(told, found, strict=True))


def test_every_problem_is_told_and_a_flood_of_them_cut_short() -> None:
    assert problems(judge_file(BATCH, RUBRIC, ITEMS)) == ("3 of 3 items are not filled in, slot slot-0 is the first",)
    file = filled()
    file["items"] += [{"slot": f"x{n}"} for n in range(1000)]
    found = problems(file)
    assert len(found) == 21
    assert found[-1] == "… and 980 more"


def test_a_flag_that_code_can_not_check_must_be_answered() -> None:
    front = RubricFront(name="r", criteria={"a": Criterion(min=1, max=2)}, flags={"funny": Flag(weight=1)})
    rubric = Rubric("", front, "")
    slot = Slot("s", "run", 0, text_digest("x"), text_digest(""), {})
    batch = Batch("b", "me", False, 0, rubric.digest, 0, "", (slot,))
    file = judge_file(batch, rubric, [BatchItem(slot, "", "x")])
    item(file, 0)["scores"]["a"] = 2
    with pytest.raises(JudgeFileError, match="code can't check it"):
        verify(file, batch, rubric)
    item(file, 0)["flags"]["funny"] = True
    (verdict,) = verify(file, batch, rubric)
    assert (verdict.composite, verdict.overruled) == (3, ())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["slot-0", "slot-1", *TEXTS]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["slot", "scores", "flags", "candidate", "tone", "digest"]) | st.text(), inner
        )
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=150)
@given(data=st.fixed_dictionaries({}, optional={"rubric": JSON, "items": JSON | st.lists(JSON), "batch": JSON}))
def test_arbitrary_data_is_refused_and_nothing_else_happens(data: File) -> None:
    with pytest.raises(JudgeFileError):
        verify(data, BATCH, RUBRIC)


@settings(deadline=None, max_examples=150)
@given(number=st.integers(0, 2), key=st.sampled_from(["scores", "flags", "note", "slot", "candidate"]), value=JSON)
def test_any_damage_to_an_item_is_refused_or_harmless(number: int, key: str, value: object) -> None:
    file = filled()
    item(file, number)[key] = value
    try:
        verdicts = verify(file, BATCH, RUBRIC)
    except JudgeFileError:
        return
    assert len(verdicts) == 3
    for verdict in verdicts:
        assert all(type(score) is int and 1 <= score <= 5 for score in verdict.scores.values())
        assert verdict.scores.keys() == RUBRIC.criteria.keys()
        assert verdict.flags.keys() == RUBRIC.flags.keys()


def test_a_score_nested_too_deep_to_be_shown_is_refused_like_any_other(tmp_path: Path) -> None:
    depth = 900
    text = json.dumps(filled()).replace('"tone": 5', f'"tone": {"[" * depth}{"]" * depth}', 1)
    path = tmp_path / "judge.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput):
        verify(read_judge_file(path), BATCH, RUBRIC)


def test_a_judge_file_is_read_with_or_without_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "judge.json"
    for encoding in ("utf-8", "utf-8-sig"):
        path.write_text(json.dumps(filled()), encoding=encoding)
        assert read_judge_file(path) == filled()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"format": "tipbench-judge/2", "batch": "b-1"}',
        b'{"format": "tipbench-judge/1"}',
        b'{"format": "tipbench-judge/1", "batch": 7}',
        b'{"format": "tipbench-judge/1", "batch": "a", "batch": "b"}',
        b'{"format": "tipbench-judge/1", "batch": "a", "items": [{"scores": {"tone": 1, "tone": 5}}]}',
        b'{"format": "tipbench-judge/1", "batch": "a", "n": ' + b"1" * 5000 + b"}",
        b'{"format": "\\u001b[2J"}',
    ],
    ids=lambda content: repr(content[-40:]),
)
def test_a_file_that_is_no_judge_file_is_refused_by_its_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "judge.json"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"judge\.json") as caught:
        read_judge_file(path)
    assert "\x1b" not in str(caught.value)


def test_a_file_that_was_exported_is_read_however_many_texts_it_has(tmp_path: Path) -> None:
    """A webhook's answer has fewer bytes; 50,000 candidates are 75 MB."""
    path = tmp_path / "judge.json"
    path.write_text(json.dumps(filled()) + " " * verify_module.MOST_BYTES)
    assert read_judge_file(path) == filled()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"missing\.json can't be read"):
        read_judge_file(tmp_path / "missing.json")


@settings(deadline=None, max_examples=150)
@given(content=st.binary() | JSON.map(lambda data: json.dumps(data).encode()))
def test_any_file_is_refused_in_our_words(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_bytes(content)
    with pytest.raises(InvalidInput):
        read_judge_file(path)
