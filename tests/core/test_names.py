"""Names that no person can have as a judge."""

import pytest

from tipbench.bench.judge.judges.catalog import CATALOG
from tipbench.core.errors import InvalidInput
from tipbench.core.names import AUTOMATIC_JUDGES, BY_RULE, check_judge_name


def test_the_automatic_judges_are_those_of_the_catalog() -> None:
    assert set(AUTOMATIC_JUDGES) == set(CATALOG)


@pytest.mark.parametrize("name", [*AUTOMATIC_JUDGES, BY_RULE, "", "a b", "ä", "-a", "a" * 41, "a\n"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        check_judge_name(name)


def test_a_judge_may_bear_the_name_of_its_kind() -> None:
    check_judge_name("command", kind="command")
    check_judge_name("lena.2")
