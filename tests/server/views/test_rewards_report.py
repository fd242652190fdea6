"""Every format tells the same, and says what the figures can't tell."""

import csv
import io
import json
from pathlib import Path

from tests.recommender.served_events import source, tip
from tests.server.views.served_rows import a_board, candidate_of, serve
from tipbench.recommender.log.reward_statistics import RewardStatisticsReader
from tipbench.server.views.rewards import Rewards, rewards_of
from tipbench.server.views.rewards_report import FORMATS, as_data, says, share, span
from tipbench.statistics.bounded import Interval

NASTY = "=cmd|'x' \x1b[2J <b>"


def made(folder: Path, model: str = "good") -> Rewards:
    board = a_board((model, "poor"))
    cells = board.grid.rows[0].cells
    log = serve(
        folder,
        ("u1", candidate_of(cells[0]), 1.0),
        ("u2", candidate_of(cells[1]), -0.25),
        ("u2", tip(1, source(1)), 1.0),
        ("u2", tip(2), 1.0),
    )
    return rewards_of(board, RewardStatisticsReader(log).read())


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
    assert "tipbench recommend tips" in sentence
    assert FORMATS["csv"](rewards) == ""
    assert FORMATS["markdown"](rewards) == f"**{sentence}**"


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
