"""A suite of another kind, files only, goes through collect, judge and compare."""

import json
from pathlib import Path
from statistics import fmean

from tests.integration.command import tipbench
from tests.integration.filling import fill

SUITE = Path(__file__).parent / "suites" / "product"


def test_product_descriptions_with_their_own_factors_criteria_flag_and_weights(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'mlflow.db'}"
    common = ("--experiment", "product-bench-1", "--mlflow-url", store)
    collected = tipbench(
        "collect", *common, "--suite", str(SUITE), "--models", "scripted/a,scripted/b", "--prompts", "plain,playful"
    )
    assert collected.status == 0, collected.err
    file = tmp_path / "judge.json"
    assert tipbench("judge", *common, "--export", str(file)).status == 0
    filled = fill(file)
    assert len(filled["items"]) == 2 * 2 * 4 + 5, "and five repeats; this suite has no anchors"
    assert list(filled["scales"]) == ["accuracy", "appeal", "clarity", "fit"]
    assert list(filled["items"][0]["flags"]) == ["overlong"]
    applied = tipbench("judge", *common, "--apply", str(file))
    assert applied.status == 0, applied.err

    scores = tmp_path / "scores.json"
    compared = tipbench("compare", *common, "--format", "json", "--scores", str(scores))
    board = json.loads(compared.out)
    assert board["rubric"]["name"] == "product-v1"
    assert len(board["standings"]) == 4

    lines = json.loads(scores.read_text(encoding="utf-8"))
    rows = [line for line in lines if line["kind"] == "judge"]
    assert len(lines) - len(rows) == 2 * 2 * 4, "and each cell as it counts"
    assert {"factor.category", "factor.audience"} <= rows[0].keys()
    given = {item["scenario"] + item["candidate"]: item["scores"] for item in filled["items"]}
    expected = fmean(
        2 * s["accuracy"] + s["appeal"] + s["clarity"] + 0.5 * s["fit"] for s in given.values()
    ) - 2 * fmean(row["overlong"] for row in rows)
    assert abs(fmean(row["composite"] for row in board["standings"]) - expected) < 1e-9
    assert sorted(row["composite"] for row in rows) == sorted(
        2 * row["accuracy"] + row["appeal"] + row["clarity"] + 0.5 * row["fit"] - 2 * row["overlong"] for row in rows
    )


def test_a_new_suite_works_as_it_is_made(tmp_path: Path) -> None:
    assert tipbench("suite", "new", "blurbs", cwd=tmp_path).status == 0
    assert tipbench("suite", "check", "blurbs", cwd=tmp_path).status == 0
    done = tipbench(
        *("run", "--suite", "blurbs", "--prompts", "v1,v2-editor", "--models", "scripted/a", "--n-tips", "1"),
        *("--judge", "lexical", "--experiment", "blurbs-bench-1", "--mlflow-url", f"sqlite:///{tmp_path / 'm.db'}"),
        cwd=tmp_path,
    )
    assert done.status == 0, done.err
    assert "scores come from simple rules" in done.out


def test_two_suites_do_not_share_an_experiment(tmp_path: Path) -> None:
    common = ("--experiment", "mixed", "--mlflow-url", f"sqlite:///{tmp_path / 'm.db'}", "--models", "scripted/a")
    assert tipbench("collect", *common, "--n-scenarios", "1").status == 0
    refused = tipbench("collect", *common, "--suite", str(SUITE), "--prompts", "plain")
    assert refused.status == 2
    assert "belongs to suite 'tip'" in refused.err
    assert "product-bench-" in refused.err


def test_a_suites_own_prompts_and_prefix_are_the_defaults(tmp_path: Path) -> None:
    store = ("--mlflow-url", f"sqlite:///{tmp_path / 'm.db'}")
    done = tipbench("collect", "--suite", str(SUITE), "--models", "scripted/a", *store)
    assert done.status == 0, done.err
    assert "product-bench-auto: 8 cells answered" in done.out
    assert f"Next: tipbench judge --experiment product-bench-auto --mlflow-url {store[1]}" in done.out
