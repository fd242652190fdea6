"""`tipbench collect`: what its flags promise."""

import json
from pathlib import Path

import pytest

from tests.integration.command import tipbench


@pytest.fixture
def words(tmp_path: Path) -> tuple[str, ...]:
    return ("--experiment", "tip-bench-x", "--mlflow-url", f"sqlite:///{tmp_path / 'm.db'}")


COLLECT = ("collect", "--models", "scripted/a", "--n-scenarios", "1")


def _cells(words: tuple[str, ...]) -> dict[str, int]:
    counts: dict[str, int] = json.loads(tipbench("compare", "--format", "json", *words).out)["cells"]
    return counts


def test_fresh_starts_over_beside_the_old_results(words: tuple[str, ...], tmp_path: Path) -> None:
    assert tipbench(*COLLECT, *words).status == 0
    assert tipbench("judge", "--run", "lexical", *words).status == 0
    again = tipbench(*COLLECT, "--fresh", *words)
    assert again.status == 0
    assert "3 stored cells no longer count" in again.err
    assert "3 cells answered" in again.out
    assert _cells(words) == {"judged": 0, "pending": 3, "failed": 0, "missing": 0}
    board = json.loads(tipbench("compare", "--format", "json", *words).out)
    assert board["judges"] == [], "the old scores went aside with the old runs"


def test_retry_failed_repeats_failures_and_only_them(words: tuple[str, ...], tmp_path: Path) -> None:
    script = tmp_path / "moody.yaml"
    script.write_text(
        'parameters: 1000000\nrules: [{when: "Marek", fail: "the runner died"}, {when: "Noor", fail: "died too"}]'
    )
    collect = ("collect", "--models", f"scripted/{script}", "--n-scenarios", "3", "--prompts", "v1", *words)
    assert tipbench(*collect).status == 1
    assert _cells(words) == {"judged": 0, "pending": 1, "failed": 2, "missing": 0}
    unasked = tipbench(*collect)
    assert unasked.status == 1
    assert "--retry-failed" in unasked.out
    repeated = tipbench(*collect, "--retry-failed")
    assert "0 cells answered" in repeated.out
    assert "2 cells FAILED" in repeated.out
    assert _cells(words) == {"judged": 0, "pending": 1, "failed": 2, "missing": 0}, "the same cells, counted once"


def test_a_dry_run_writes_nothing(words: tuple[str, ...], tmp_path: Path) -> None:
    done = tipbench(*COLLECT, "--dry-run", *words)
    assert done.status == 0
    assert "= 3 cells" in done.out
    assert list(tmp_path.iterdir()) == []


def test_a_config_file_gives_the_options_and_a_flag_goes_before_it(words: tuple[str, ...], tmp_path: Path) -> None:
    config = tmp_path / "bench.yaml"
    config.write_text("models: [scripted/a, scripted/b]\nprompts: v1\nn_scenarios: 2\n")
    done = tipbench("collect", "--config", str(config), "--n-scenarios", "1", "--dry-run", *words)
    assert "2 models × 1 prompts × 1 scenarios × 1 repeats = 2 cells" in done.out


def test_a_resumed_experiment_says_which_cells_are_new(words: tuple[str, ...]) -> None:
    collect = ("collect", "--models", "scripted/a", "--prompts", "v1", *words)
    assert tipbench(*collect, "--n-scenarios", "2").status == 0
    more = tipbench(*collect, "--n-scenarios", "4")
    assert "2 of 4 cells are stored already; new are those of ward-lead-morning, payroll-clerk-morning." in more.err
    again = tipbench(*collect, "--n-scenarios", "4")
    assert "4 of 4 cells are stored already." in again.err
