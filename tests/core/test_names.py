"""Names that can be a part of a key."""

import pytest

from tipbench.core.errors import InvalidInput
from tipbench.core.names import check_judge_name


@pytest.mark.parametrize("name", ["", "a b", "ä", "-a", "a" * 41, "a\n"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        check_judge_name(name)


def test_letters_digits_dots_and_dashes_are_fine() -> None:
    check_judge_name("lena.2-b_c")
