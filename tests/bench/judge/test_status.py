"""The status answers first: can the judges be trusted, who is on hold, what waits, and what comes next."""

from collections.abc import Callable

import pytest

from tests.integration.filling import filled
from tipbench.bench.bench import Bench
from tipbench.bench.judge.apply import ApplyOptions
from tipbench.bench.judge.judges.interface import JudgeName
from tipbench.bench.judge.sample import BatchSize
from tipbench.bench.judge.status import JudgeLine, JudgeStatus, StatusAnswer, count_on_hold, status_answer
from tipbench.bench.tracking.interface import Experiment


def _judge(work: Bench, judge: str, tone: int = 0, limit: int | None = None, accepted: str = "") -> None:
    """Have a judge score what is pending for it; `tone` is how much milder than the anchors it is."""
    file = filled(work.new_batch(JudgeName(judge), BatchSize(5, limit)).file)
    for item in file["items"]:
        item["scores"]["tone"] = max(1, min(5, item["scores"]["tone"] + tone))
    work.apply(file, ApplyOptions(accept_drift=accepted))


def _answer(work: Bench) -> tuple[JudgeStatus, StatusAnswer]:
    status, _ = work.status()
    return status, status_answer(status, "x")


def test_from_the_first_cell_to_judges_that_can_be_trusted(work: Bench, collected: Callable[..., Experiment]) -> None:
    collected(n_scenarios=4)
    _, nothing = _answer(work)
    assert nothing.says == "No batch has been applied yet; 24 cells wait for a judge."
    assert str(nothing.next).startswith("judge 24 cells, about 18 min: tipbench judge --experiment x --export judge")

    _judge(work, "ana", tone=2, limit=60)
    status, held = _answer(work)
    assert count_on_hold(work.store, work.experiment) == 1
    [ana] = status.judges
    assert (ana.batches, ana.candidates, ana.state) == (1, 60, "on hold")
    assert ana.anchors.startswith("mild by 1.")
    assert ana.anchors.endswith(" on tone")
    assert held.says.startswith("The scores of ana are on hold and don't count (tone: scores are 1.")
    assert held.says.endswith(" 24 cells wait for a judge.")
    assert held.next.command == "tipbench judge --experiment x --export judge.json --judge ana"

    _judge(work, "ana")
    status, done = _answer(work)
    assert [line.state for line in status.batches] == ["scored again", "counts"]
    assert count_on_hold(work.store, work.experiment) == 0
    assert [(line.state, line.anchors, line.batches) for line in status.judges] == [("counts", "close", 2)]
    assert done.says == "ana can be trusted: the scores agree with the anchors'."
    assert done.next.command == "tipbench compare --experiment x"

    _judge(work, "ben", tone=2, accepted="lena: a kind reader")
    status, accepted = _answer(work)
    assert status.judges[1].state == "accepted"
    assert accepted.says == "Take the scores of ben with care: they drifted from the anchors and were accepted."


def _line(judge: str, state: str = "counts", trusted: bool | None = True, on_hold: str = "") -> JudgeLine:
    return JudgeLine(judge, 1, 8, state, "close", trusted, on_hold)


@pytest.mark.parametrize(
    ("lines", "alpha", "says", "command"),
    [
        ([_line("lexical", "provisional")], {}, "Only rules have scored so far; their", "compare --experiment 'my x'"),
        ([_line("a", trusted=None)], {}, "Whether a can be trusted is not known: that takes 12", "compare"),
        ([_line("a"), _line("b")], {"tone": 0.3}, "Take the scores with care: a and b disagree on tone.", "compare"),
        ([_line("a"), _line("b"), _line("c")], {"tone": None}, "a, b and c can be trusted", "compare"),
        (
            [_line("a", "on hold", False, "tone: off"), _line("command", "1 of 2 on hold", False, "tone: off")],
            {},
            "The scores of a and command are on hold and don't count; --verbose says why.",
            "--judge a",
        ),
        ([_line("command", "1 of 2 on hold", False, "tone: off")], {}, "The scores of command are", "--run command"),
    ],
)
def test_every_answer_names_the_judges_and_the_command(
    lines: list[JudgeLine], alpha: dict[str, float | None], says: str, command: str
) -> None:
    answer = status_answer(JudgeStatus(tuple(lines), 0, (), alpha, (), (), {}), "my x")
    assert says in answer.says
    assert command in (answer.next.command or "")
