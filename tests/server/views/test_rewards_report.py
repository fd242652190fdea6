"""Every format tells the same, and says what the figures can't tell."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.compare.html.boards import board, grid
from tests.recommender.served_events import source, tip
from tests.server.views.served_rows import a_board, candidate_of, serve
from tipbench.recommender.log.reward_statistics import RewardStatisticsReader
from tipbench.server.views.rewards import Rewards, ServedRow, Weighted, rewards_of
from tipbench.server.views.rewards_report import FORMATS, answer_of, as_data, says, share, span
from tipbench.statistics.interval import Interval

Figures = tuple[float | None, float, float | None]  # mean, half its interval, weighted mean
NASTY = "=cmd|'x' \x1b[2J <b>"


def made(folder: Path, model: str = "good") -> Rewards:
    found = a_board((model, "poor"))
    cells = found.grid.rows[0].cells
    log = serve(
        folder,
        ("u1", candidate_of(cells[0]), 1.0),
        ("u2", candidate_of(cells[1]), -0.25),
        ("u2", tip(1, source(1)), 1.0),
        ("u2", tip(2), 1.0),
    )
    return rewards_of(found, RewardStatisticsReader(log).read())


def test_every_format_tells_the_same(tmp_path: Path) -> None:
    rewards = made(tmp_path)
    [row] = json.loads(FORMATS["json"](rewards))["rows"]
    assert (row["rank"], row["model"], row["served"], row["mean_reward"]) == (1, "good", 2, 0.375)
    assert row["weighted"] == {"mean": None, "rewards": 2, "effective": 2.0}
    [flat] = csv.DictReader(io.StringIO(FORMATS["csv"](rewards)))
    assert (flat["model"], flat["mean_reward"], flat["weighted.effective"]) == ("good", "0.375", "2.0")
    head, _, line, *_ = [line for line in FORMATS["markdown"](rewards).splitlines() if line.startswith("|")]
    shown = dict(zip(*([part.strip() for part in one.split("|")] for one in (head, line)), strict=True))
    assert (shown["model"], shown["mean reward"], shown["completed"], shown["weighted mean"]) == (
        "good",
        "0.38",
        "50 %",
        "–",
    )


def test_it_says_what_the_figures_can_not_tell_and_what_is_left_out(tmp_path: Path) -> None:
    told = " ".join(says(made(tmp_path)))
    assert "1 of 2 rows of 'e' were served, 2 times to 2 users; 2 times a reward came back." in told
    assert "A policy chose what to show" in told
    assert "an effective sample of 200 rewards" in told
    assert "served once from 1 run outside of 'e'" in told
    assert "served once without a source." in told
    assert "not in the log" not in told


def test_where_nothing_was_served_it_says_how_to_begin(tmp_path: Path) -> None:
    rewards = rewards_of(a_board(), RewardStatisticsReader(tmp_path).read())
    [sentence] = as_data(rewards)["says"]
    assert "Nothing of 'e' was served yet" in sentence
    answer = as_data(rewards)["answer"]
    assert (answer["verdict"], answer["says"]) == ("too_little", sentence)
    assert answer["next"]["command"] == "tipbench recommend tips --experiment e > tips.json"
    assert FORMATS["csv"](rewards) == ""
    assert FORMATS["markdown"](rewards).startswith(f"**{sentence}**\n\nNext: ")


def _row(rewards: Rewards, number: int, mean: float | None, half: float, weighted: float | None) -> ServedRow:
    """A row of the leaderboard as it might have been served."""
    interval = None if mean is None else Interval(mean - half, mean + half)
    effective = 0.0 if weighted is None else 300.0
    figures = (900, 90, 0 if mean is None else 300, 0, mean, interval, Weighted(300, effective, weighted))
    return ServedRow(number + 1, rewards.board.rows[number], *figures)


@pytest.mark.parametrize(
    ("good", "poor", "verdict", "says", "step"),
    [
        ((None, 0, None), None, "too_little", "900 times something was served, and no reward", "have the app report"),
        ((0.5, 0.1, 0.5), None, "too_little", "Only good × v1 got rewards, 0.50 (0.40 to 0.60)", "serve another row"),
        ((0.5, 0.3, 0.5), (0.1, 0.3, 0.1), "open", "good × v1 has the highest mean, 0.50 (0.20 to 0.80), and", "go on"),
        ((0.5, 0.1, None), (0.1, 0.1, 0.1), "open", "too little of that was left to chance.", "with a policy that"),
        ((0.5, 0.1, 0.1), (0.1, 0.1, 0.2), "open", "corrected for that, another row is ahead.", "with a policy that"),
        ((0.5, 0.1, 0.5), (0.1, 0.1, 0.1), "best", "Users respond best to good × v1: its mean", "keep serving good"),
        ((0.1, 0.1, 0.1), (0.5, 0.1, 0.5), "best", "Users respond best to poor × v1: its mean", "judges rank good"),
    ],
)
def test_a_row_is_called_the_best_only_where_that_can_be_said(
    tmp_path: Path, good: Figures, poor: Figures | None, verdict: str, says: str, step: str
) -> None:
    made = rewards_of(board(grid(["good", "poor"], ["v1"], 8)), RewardStatisticsReader(tmp_path).read())
    assert [row.model for row in made.board.top] == ["good"]
    rows = tuple(_row(made, number, *figures) for number, figures in enumerate((good, poor)) if figures)
    answer = answer_of(replace(made, rows=rows))
    assert answer.verdict == verdict
    assert says in answer.says
    assert step in str(answer.next)


def test_names_of_models_do_nothing_in_any_format(tmp_path: Path) -> None:
    rewards = made(tmp_path, NASTY)
    for form in FORMATS.values():
        assert "\x1b" not in form(rewards)
    assert json.loads(FORMATS["json"](rewards))["rows"][0]["model"] == NASTY
    [flat] = csv.DictReader(io.StringIO(FORMATS["csv"](rewards)))
    assert flat["model"].startswith("'=")
    assert "<b>" not in FORMATS["markdown"](rewards).replace("\\<b\\>", "")


def test_shares_and_spans_for_people() -> None:
    assert [share(one) for one in (None, 0.0, 0.504, 1.0)] == ["–", "0 %", "50 %", "100 %"]
    assert [span(one) for one in (None, Interval(-0.5, 0.25))] == ["–", "-0.50 – 0.25"]
