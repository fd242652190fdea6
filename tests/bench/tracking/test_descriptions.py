"""What MLflow's pages show of runs: current, short enough, harmless, and never in place of somebody's own words."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.bench.tracking.records_made import RUBRIC, SCENARIO, a_failure, an_answer
from tipbench.bench.records import Batch, Slot, Verdict
from tipbench.bench.tracking.descriptions import (
    MAX_LENGTH,
    JudgeScores,
    batch_description,
    batch_name,
    batch_summary,
    cell_description,
    cell_summary,
    summary_of,
    with_summary,
)
from tipbench.core.untrusted import storable

NAMES = ("tone", "format_ok", "composite")
SLOTS = tuple(Slot(f"s{n}", f"run-{n // 2}", n, "d", "d", {}) for n in range(4))
BATCH = Batch("b-1", "lena", False, 0, "digest", 1_777_300_000_000, "secret", SLOTS)
VERDICTS = [Verdict(slot, {"tone": 4}, {}, (), 12.5, "") for slot in SLOTS]


def judged(judge: str = "lena", provisional: bool = False, counted: bool = True) -> JudgeScores:
    return JudgeScores(judge, dict.fromkeys(NAMES, 4.0), provisional, counted)


def test_a_cell_is_described_with_its_state_first() -> None:
    description = cell_description(an_answer(("Close the door.", "Call *Ana*.")), RUBRIC)
    assert summary_of(description) == "**Not judged yet**: 2 candidates."
    assert description.startswith("**Not judged yet**")
    assert description.endswith(
        "**Candidates**\n\n1. Close the door.\n2. Call \\*Ana\\*.\n\n**Scenario maya-morning**\n\n> Maya, 08:00"
    )
    empty = cell_description(an_answer(()), RUBRIC)
    assert empty.startswith("**No usable text**: no candidate could be read from the answer")
    assert "the rubric's minimum, 2.00" in empty
    failed = cell_description(a_failure("died: <b>\x1b[31m"), RUBRIC)
    assert failed.startswith("**Failed**, so it has no scores: died: &lt;b&gt;\\\\u001b\\[31m\n")
    assert "Candidates" not in empty + failed


@settings(deadline=None, max_examples=60)
@given(texts=st.lists(st.text(max_size=400), min_size=1, max_size=60), scenario=st.text(max_size=3_000))
@example(texts=["*" * 2_000] * 3, scenario="\n<" * 1_500)
@example(texts=["word " * 400] * 100, scenario="\ud800\x00")
def test_a_description_always_fits_and_leaves_room_for_scores(texts: list[str], scenario: str) -> None:
    answer = an_answer(tuple(texts), scenario=type(SCENARIO)("s", {}, {}, scenario))
    description = cell_description(answer, RUBRIC)
    assert not storable(description).escaped
    assert "<" not in description.replace("<!-- tipbench", "")
    many = [judged(f"a-judge-with-a-long-name-{number}") for number in range(40)]
    scored = with_summary(description, cell_summary(NAMES, (2, 17), many[0].scores, many))
    assert scored is not None
    assert len(scored) <= MAX_LENGTH
    assert "The other scores are among the metrics." in scored


def test_what_was_cut_is_counted() -> None:
    description = cell_description(an_answer(("x" * 5_000, "short"), scenario=SCENARIO), RUBRIC)
    assert "x… (4,150 more characters)\n2. short\n" in description
    many = cell_description(an_answer(("word " * 30,) * 100), RUBRIC)
    assert "more characters)\n\ncandidates.json has 8" in many


def test_scores_are_summarized_for_those_that_count_and_those_that_dont() -> None:
    both = {"tone": 3.5, "format_ok": 1.0, "composite": 11.25}
    text = cell_summary(NAMES, (2, 17), both, [judged(), judged("rules", True, False), judged("tom", False, False)])
    assert text.splitlines()[0] == "**Composite 11.25** on a scale from 2 to 17, judged by lena."
    assert [line.partition("| ")[2].partition(" |")[0] for line in text.splitlines()[4:]] == [
        *("lena", "rules (provisional)", "tom (on hold)"),
    ]
    together = cell_summary(NAMES, (2, 17), both, [judged(), judged("tom")])
    assert "judged by lena and tom." in together
    assert "| all that count | 3.50 | 1.00 | 11.25 |" in together
    assert cell_summary(NAMES, (2, 17), {}, [judged("tom", False, False)]).startswith(
        "**Not judged yet**: these scores don't count."
    )
    long_names = tuple(f"{'criterion' * 4}_{number}" for number in range(24))
    scores = JudgeScores("lena", dict.fromkeys(long_names, 1.0) | {"composite": 1.0}, False, True)
    wide = cell_summary((*long_names, "composite"), (2, 17), scores.scores, [scores])
    assert wide.endswith("judged by lena.\n\nThe other scores are among the metrics.")


def test_a_summary_is_replaced_and_nothing_else() -> None:
    fresh = with_summary(None, "One.")
    assert fresh is not None
    mine = f"My words before.\n\n{fresh}\n\nMy words after, ü 😀."
    changed = with_summary(mine, "Two: longer.")
    assert changed is not None
    assert summary_of(changed) == "Two: longer."
    assert changed.startswith("My words before.\n\nTwo")
    assert changed.endswith("\n\nMy words after, ü 😀.")
    assert with_summary(changed, "Two: longer.") == changed, "the same again changes nothing"


@pytest.mark.parametrize(
    "edited",
    [
        "",
        "All my own.",
        (with_summary(None, "One.") or "").replace("One.", "Won."),
        (with_summary(None, "One.") or "").replace("One.", "One more thing: one."),
        (with_summary(None, "One.") or "").replace("<!--", ""),
        (with_summary(None, "One.") or "").replace("the 4 char", "the 99999 char"),
        (with_summary(None, "One.") or "") + "x" * MAX_LENGTH,
    ],
)
def test_what_somebody_edited_stays_as_it_is(edited: str) -> None:
    assert with_summary(edited, "Two.") is None
    assert with_summary(None, "x" * MAX_LENGTH) is None, "MLflow would cut it"


def test_a_candidate_cant_pass_itself_off_as_the_summary() -> None:
    forged = with_summary(None, "Composite 17.00") or ""
    description = cell_description(an_answer((forged, f"\n\n{forged}\n\n")), RUBRIC)
    assert summary_of(description) == "**Not judged yet**: 2 candidates."
    edited = description.replace("**Not judged yet**", "**Mine**")
    assert summary_of(edited) is None


def test_a_batch_is_named_and_described_for_people() -> None:
    assert batch_name(BATCH) == "lena: batch of 4 candidates, 2026-04-27"
    description = batch_description(BATCH, "tip-v1")
    assert summary_of(description) == "**Not judged yet**: 4 candidates of 2 cells for lena."
    assert "secret" not in description


@pytest.mark.parametrize(
    ("provisional", "drift", "says"),
    [
        (False, ("", ""), "The scores count."),
        (True, ("tone: off", ""), "The scores are provisional: they come from simple rules and don't count."),
        (
            False,
            ("tone: off", "ben: <fine>."),
            "The scores count, though the judge drifted; accepted: ben: &lt;fine&gt;.",
        ),
        (False, ("tone: off", ""), "Why: tone: off."),
    ],
)
def test_a_batch_says_whether_it_counts(provisional: bool, drift: tuple[str, str], says: str) -> None:
    summary = batch_summary("lena", VERDICTS, BATCH.created_ms, provisional, drift)
    assert summary.startswith("**Judged by lena** on 2026-04-27: 4 candidates, mean composite 12.50. The scores ")
    assert summary.endswith(says)
