"""Judges by name, and the names that people can't have."""

import pytest

from tipbench.bench.judge.judges.catalog import CATALOG, judge_model, person
from tipbench.bench.records import BY_RULE
from tipbench.core.errors import InvalidInput
from tipbench.core.settings import Settings


@pytest.mark.parametrize("name", [*CATALOG, BY_RULE, "", "a b"])
def test_names_that_no_person_can_have(name: str) -> None:
    with pytest.raises(InvalidInput):
        person(name)


def test_a_person_has_a_name() -> None:
    assert person("lena.2").name == "lena.2"


def test_only_a_judge_that_is_a_model_asks_one() -> None:
    settings = Settings({"TIPBENCH_JUDGE_MODEL": "openai/judge"})
    assert judge_model("model", settings) == "openai/judge"
    assert judge_model("lexical", settings) is None
    assert judge_model(None, settings) is None
    assert judge_model("model", Settings({})) is None
