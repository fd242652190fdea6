"""What is asked of people: to be read as it stands, and typed as it stands."""

import shlex

import pytest

from tipbench.airflow.approval_prompt import question_of, subject_of

STORE = "http://mlflow:5000"
EXPORTED = {
    "experiment": "tip-bench",
    "batch": "b1",
    "judge": "person",
    "items": 3,
    "link": "http://mlflow:5000/#/experiments/1/runs/r1/artifacts",
}


def test_it_says_where_the_batch_is_and_how_to_score_it() -> None:
    asked = question_of(EXPORTED, STORE)
    assert "Batch `b1` is for judge `person`" in asked
    assert "(<http://mlflow:5000/#/experiments/1/runs/r1/artifacts>)" in asked
    assert "`tipbench judge --experiment=tip-bench --mlflow-url=http://mlflow:5000 --apply judge.json`" in asked
    assert subject_of(EXPORTED) == "3 items of tip-bench wait for scores"


@pytest.mark.parametrize(
    "name", ["x` ![p](http://evil.example/p.png) `y", "`` <b>x</b> ``", "a; rm -rf ~", "$(id)", "--apply=x", "it's"]
)
def test_a_name_stays_code_and_a_word_of_the_command(name: str) -> None:
    asked = question_of({**EXPORTED, "experiment": name}, STORE)
    given = asked.partition(" and pass it to ")[2].partition(", or paste it here")[0]
    fence = given[: len(given) - len(given.lstrip("`"))]
    inner = given.removeprefix(fence).removesuffix(fence)
    assert fence not in inner
    assert shlex.split(inner) == [
        "tipbench",
        "judge",
        f"--experiment={name}",
        f"--mlflow-url={STORE}",
        "--apply",
        "judge.json",
    ]


def test_an_address_stays_one() -> None:
    asked = question_of({**EXPORTED, "link": "http://mlflow/> ![p](x"}, STORE)
    assert "(<http://mlflow/%3E%20![p](x>)" in asked
