"""A form's texts become options as the command line's do, and nothing is guessed."""

import pytest

from tests.server.ui.visits import visit
from tipbench.server.ui.forms import only, options_of


def test_types_are_those_of_the_table() -> None:
    given = options_of({"n_tips": ["3"], "temperature": ["0.5"], "experiment": ["a, b"], "diversity": ["true"]})
    assert given == {
        "n_tips": 3, "temperature": 0.5, "experiment": "a, b", "diversity": True, "models": "", "prompts": "",
    }  # fmt: skip


@pytest.mark.parametrize("text", ["", "x", "1.5", "9" * 5_000])
def test_what_is_no_number_stays_as_it_was_written(text: str) -> None:
    assert options_of({"n_tips": [text]})["n_tips"] == text


def test_empty_means_the_default_only_where_there_is_none_of_its_own() -> None:
    given = options_of({"max_tokens": [""], "judge": [" "], "n_tips": [""]})
    assert "max_tokens" not in given
    assert "judge" not in given
    assert given["n_tips"] == ""


def test_models_and_prompts_are_what_was_ticked_and_named() -> None:
    given = options_of({"models": ["a", "b"], "more_models": [" c,, d "], "prompts": ["v1", "v2"]})
    assert (given["models"], given["prompts"]) == ("a,b,c,d", "v1,v2")
    assert "more_models" not in given


def test_a_switch_that_is_off_is_not_sent_and_means_no() -> None:
    assert options_of({})["diversity"] is False
    assert options_of({"diversity": ["maybe"]})["diversity"] == "maybe"


def test_of_a_field_that_came_twice_the_last_counts() -> None:
    assert only({"name": ["a", "b"]}, "name") == "b"
    assert only({}, "name") == ""


def test_a_body_that_is_no_form_or_far_too_long_is_no_crash() -> None:
    client = visit()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert client.post("/runs", content=b"\xff\xfe%zz=%ff&&&=", headers=headers).status_code == 422
    assert client.post("/runs", content=b"a=1&" * 2_000, headers=headers).status_code == 400
