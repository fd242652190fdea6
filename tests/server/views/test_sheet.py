"""When an item counts as scored."""

import pytest

from tipbench.bench.suites.load import load_suite
from tipbench.server.views.sheet import given

RUBRIC = load_suite("tip").rubric
SCORES = {("scores", name): 3 for name in RUBRIC.criteria}
CHECKED = {"format_ok": True, "overlong": False}


@pytest.mark.parametrize("missing", list(SCORES))
def test_every_score_is_needed(missing: tuple[str, str]) -> None:
    assert given(RUBRIC, CHECKED, SCORES).complete
    assert not given(RUBRIC, CHECKED, {**SCORES, missing: None}).complete
    assert not given(RUBRIC, CHECKED, {key: value for key, value in SCORES.items() if key != missing}).complete


def test_a_flag_that_code_can_not_check_is_needed_too() -> None:
    assert not given(RUBRIC, {"overlong": False}, SCORES).complete
    assert given(RUBRIC, {"overlong": False}, {**SCORES, ("flags", "format_ok"): False}).complete
