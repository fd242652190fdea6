"""What a judge makes of the anchors says what a batch by it would be worth."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.command import tipbench
from tests.integration.filling import filled
from tipbench.bench.bench import Bench
from tipbench.bench.judge.calibration import calibrate, load_calibrations
from tipbench.bench.judge.judges.interface import JudgeName
from tipbench.bench.suites.load import load_suite
from tipbench.core.errors import InvalidInput
from tipbench.core.paths import calibrations_folder
from tipbench.core.settings import Settings

SUITE = load_suite("tip")
STAND_IN = Path(__file__).parents[2] / "stand_in_agent.py"


class Known:
    """Scores by a rule; remembers what it was given."""

    def __init__(self, off: int = 0) -> None:
        self.identity = JudgeName("known")
        self.off = off
        self.files: list[dict[str, Any]] = []

    def score(self, file: dict[str, Any]) -> dict[str, Any]:
        self.files.append(file)
        done = filled(file)
        for item in done["items"]:
            item["scores"] = {name: min(5, max(1, score + self.off)) for name, score in item["scores"].items()}
        return done


def test_a_faithful_judge_would_count_and_every_anchor_is_scored_twice(home: Path) -> None:
    judge = Known()
    with Bench(suite="tip") as bench:
        found = bench.calibrate(judge)
    assert found.says == "A batch by 'known' would count: it scores 40 anchors as they should be."
    assert all(one.repeats and one.repeats.n == 40 for one in found.drift.criteria.values())
    (file,) = judge.files
    texts = [item["candidate"] for item in file["items"]]
    assert sorted(texts) == sorted(anchor.candidate for anchor in SUITE.anchors for _ in range(2))
    assert texts[:40] != texts[40:], "shuffled"
    (stored,) = load_calibrations(home)
    assert stored.in_short == found.in_short
    assert "would count, κ 1.00/1.00/1.00" in stored.in_short


def test_a_judge_that_is_off_would_be_on_hold(home: Path) -> None:
    with Bench(suite="tip") as bench:
        found = bench.calibrate(Known(off=-2))
    assert not found.would_count
    assert found.says.startswith("A batch by 'known' would be on hold: relevance: scores are ")


def test_too_few_anchors_are_refused_and_damaged_files_left_out(home: Path) -> None:
    with pytest.raises(InvalidInput, match="11 anchors that 'known' did not make, and it takes 12"):
        calibrate(Known(), SUITE.rubric, SUITE.anchors[:11], "b", 0)
    calibrations_folder(home).mkdir()
    (calibrations_folder(home) / "x.json").write_text("{")
    assert load_calibrations(home) == []


def test_as_a_user_types_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIPBENCH_JUDGE_AGENT", shlex.join([sys.executable, str(STAND_IN)]))
    done = tipbench("judge", "--run", "agent", "--judge", "claude-code-2.1", "--calibrate", "--suite", "tip")
    assert done.status == 0, done.err
    assert done.out.startswith("A batch by 'claude-code-2.1' would count: it scores 40 anchors as they should be.")
    assert "It took 0.04 USD and " in done.out
    assert not list((Settings().home / "judged").iterdir())
    stored = json.loads(next(calibrations_folder(home).iterdir()).read_text())
    assert stored["usage"]["agent/calls"] == 4
    wrong = tipbench("judge", "--calibrate", "--status")
    assert (wrong.status, "--calibrate goes with --run NAME" in wrong.err) == (2, True)
