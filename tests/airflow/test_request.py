"""A conf, held against the configuration table."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tipbench.airflow.request import read_conf
from tipbench.bench.options import Options
from tipbench.core.errors import Problems
from tipbench.core.untrusted import printable

HOSTS = {"ollama_url": "http://gpu1:11434"}


def test_an_empty_conf_means_the_defaults_of_the_dag() -> None:
    request = read_conf({}, {**HOSTS, "models": "scripted/a", "retry_failed": True})
    assert request.options == Options(models="scripted/a", ollama_url="http://gpu1:11434")
    assert (request.retry_failed, request.fresh) == (True, False)


def test_what_a_form_sends_unchanged_counts_as_not_given() -> None:
    """So that another suite has its own prompts, and experiments of its own name."""
    form = {name: field.default for name, field in Options.model_fields.items()} | {"retry_failed": False, "n_tips": 3}
    options = read_conf(form, {}).options
    assert options.model_fields_set == {"n_tips"}
    assert options.n_tips == 3


def test_a_key_that_the_dag_has_another_default_for_can_be_set_back() -> None:
    defaults = {**HOSTS, "n_tips": 3}
    assert read_conf({}, defaults).options.n_tips == 3
    assert read_conf({"n_tips": 5}, defaults).options.n_tips == 5
    assert read_conf({"n_tips": None}, defaults).options.n_tips == 5


@pytest.mark.parametrize(
    ("conf", "told"),
    [
        ({"n_tipps": 3}, "n_tipps: unknown key; did you mean n_tips?"),
        ({"n_tips": "3"}, "n_tips: input should be a valid integer (given: '3')"),
        ({"fresh": "yes"}, "fresh: must be true or false (given: 'yes')"),
        ({"ollama_url": "gpu1:11434"}, "ollama_url: must start with http:// or https://"),
    ],
)
def test_what_can_not_be_used_is_told_by_key_and_value(conf: dict[str, Any], told: str) -> None:
    with pytest.raises(Problems, match="nothing was generated") as refused:
        read_conf(conf, HOSTS)
    (problem,) = refused.value.problems
    assert problem.startswith(told)


def test_everything_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(Problems) as refused:
        read_conf({"fresh": 2, "n_tips": 0, "zzz": None}, HOSTS)
    assert {problem.partition(":")[0] for problem in refused.value.problems} == {"fresh", "n_tips", "zzz"}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*Options.model_fields, "fresh", "zzz"]) | st.text(), _JSON, max_size=5))
def test_any_conf_is_taken_or_refused_in_words(conf: dict[str, Any]) -> None:
    try:
        read_conf(conf, HOSTS)
    except Problems as refused:
        assert all(problem == printable(problem, 10_000) for problem in refused.problems)  # noqa: PT017 - both ends are right
