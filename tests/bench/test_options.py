"""The configuration table: strict about what it is given, and telling everything that is wrong at once."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tipbench.bench.options import Options, make_options, option_fields, read_config, split_names
from tipbench.core.errors import InvalidInput, Problems
from tipbench.core.untrusted import printable

KEYS = st.sampled_from([*Options.model_fields, "n_tip", "", "\x1b[2J"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def problems(**given: Any) -> tuple[str, ...]:
    with pytest.raises(Problems) as caught:
        make_options(given)
    return caught.value.problems


def test_the_defaults_are_those_of_the_documented_table() -> None:
    options = make_options({})
    assert options.model_names == ("qwen2.5:0.5b", "qwen2.5:1.5b", "gemma3:1b", "llama3.2:3b")
    assert options.prompt_names == ("v1", "v2-mentor", "v3-few-shot")
    assert (options.n_tips, options.n_scenarios, options.temperature, options.diversity) == (5, 0, 0.7, False)
    assert (options.experiment, options.max_model_b, options.suite) == ("tip-bench-auto", 4.0, "tip")
    assert (options.repeats, options.seed, options.max_tokens, options.judge) == (1, 0, None, None)
    assert options.ollama_url == "http://localhost:11434"


@settings(deadline=None, max_examples=150)
@given(data=st.dictionaries(KEYS, VALUES, max_size=4))
@example(data={"seed": 16**9999})
def test_any_data_gives_options_or_problems_that_can_be_printed(data: dict[str, Any]) -> None:
    message = ""
    try:
        make_options(data)
    except Problems as caught:
        message = str(caught)
    assert message == printable(message)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("n_tips", 0),
        ("n_tips", 51),
        ("n_tips", True),
        ("n_tips", "5"),
        ("n_tips", 5.0),
        ("n_tips", None),
        ("n_scenarios", -1),
        ("temperature", float("nan")),
        ("temperature", float("inf")),
        ("temperature", -0.1),
        ("temperature", "0.7"),
        ("max_model_b", float("nan")),
        ("max_model_b", float("inf")),
        ("max_model_b", -1),
        ("diversity", "true"),
        ("diversity", 1),
        ("models", ""),
        ("models", " , "),
        ("models", "a,b,a"),
        ("models", ["a", 3]),
        ("models", "a,b\x00c"),
        ("models", "embedded/\udcff.gguf"),
        ("prompts", ","),
        ("experiment", ""),
        ("experiment", " x"),
        ("experiment", "a\nb"),
        ("experiment", "a\x1bb"),
        ("experiment", "x" * 201),
        ("ollama_url", "localhost:11434"),
        ("ollama_url", "file:///etc/passwd"),
        ("repeats", 0),
        ("seed", -1),
        ("seed", 2**31),
        ("max_tokens", 0),
    ],
)
def test_a_value_that_can_not_be_used_is_refused_by_key_and_value(key: str, value: object) -> None:
    (problem,) = problems(**{key: value})
    assert problem.startswith(f"{key}: ")
    assert "(given: " in problem


def test_an_unknown_key_is_refused_with_the_keys_there_are() -> None:
    (problem,) = problems(frobnicate=3)
    assert problem.startswith("frobnicate: unknown key")
    assert all(key in problem for key in Options.model_fields)


def test_a_key_that_is_nearly_right_is_put_right() -> None:
    assert problems(**{"n-tips": 3}) == ("n-tips: unknown key; did you mean n_tips?",)


def test_names_may_come_as_a_list() -> None:
    assert make_options({"models": ["a", "b"], "prompts": ["v1"]}).model_names == ("a", "b")


def test_a_password_in_an_address_is_not_repeated() -> None:
    (problem,) = problems(ollama_url="bob:hunter2@host:11434")
    assert "hunter2" not in problem


def test_what_was_not_given_comes_from_the_suite() -> None:
    fitted = make_options({"n_tips": 3}).with_suite_defaults("blurb-bench-", ["a", "b"], one_candidate=False)
    assert (fitted.prompts, fitted.experiment, fitted.n_tips) == ("a,b", "blurb-bench-auto", 3)
    given = make_options({"prompts": "a", "experiment": "mine"})
    given = given.with_suite_defaults("blurb-bench-", ["a", "b"], one_candidate=True)
    assert (given.prompts, given.experiment, given.n_tips) == ("a", "mine", 1)


def test_every_problem_is_told_at_once() -> None:
    told = problems(n_tips=0, temperature=float("nan"), tempreature=1, models="a,a", seed="x")
    assert sorted(problem.split(":")[0] for problem in told) == [
        "models",
        "n_tips",
        "seed",
        "temperature",
        "tempreature",
    ]


def test_the_source_of_the_options_is_named() -> None:
    with pytest.raises(Problems, match=r"^bench\.yaml can't be used"):
        make_options({"x": 1}, "bench.yaml")


def test_a_whole_number_is_as_good_as_a_fraction() -> None:
    assert make_options({"temperature": 1, "max_model_b": 7}) == make_options({"temperature": 1.0, "max_model_b": 7.0})


def test_names_are_separated_by_commas_and_spaces_do_not_matter() -> None:
    assert split_names(" a, b ,,c ") == ("a", "b", "c")


def test_the_table_has_a_row_for_every_key_with_its_kind() -> None:
    rows = {field.key: field for field in option_fields()}
    assert list(rows) == list(Options.model_fields)
    assert rows["n_tips"][1:4] == ("--n-tips", int, 5)
    assert rows["diversity"][1:4] == ("--diversity", bool, False)
    assert rows["max_tokens"][1:4] == ("--max-tokens", int, None)
    assert rows["judge"][1:4] == ("--judge", str, None)
    assert all(field.help for field in rows.values())


def config(folder: Path, text: str) -> Path:
    path = folder / "bench.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


@pytest.mark.parametrize(
    "text", ["n_tips: 3\nmodels: a,b\n", '{"n_tips": 3, "models": "a,b"}', "\ufeffn_tips: 3\nmodels: a,b"]
)
def test_a_config_file_is_yaml_or_json(tmp_path: Path, text: str) -> None:
    assert read_config(config(tmp_path, text)) == {"n_tips": 3, "models": "a,b"}


def test_an_empty_config_file_says_nothing(tmp_path: Path) -> None:
    assert read_config(config(tmp_path, "# nothing yet\n")) == {}


@pytest.mark.parametrize(
    "text",
    [
        "- n_tips",
        "n_tips",
        "n_tips: [",
        "n_tips: 2001-99-99",
        "n_tips: !!bool maybe",
        "n_tips: !!int ''",
        "n_tips: !!timestamp x",
        "n_tips: " + "1" * 5000,
        "[" * 100_000,
        "\x00",
        "\ud800",
        "!!python/object/apply:os.system [true]",
    ],
    ids=lambda text: repr(text[:30]),
)
def test_a_config_file_that_can_not_be_read_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidInput, match=r"bench\.yaml"):
        read_config(config(tmp_path, text))


def test_a_missing_config_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"missing\.yaml"):
        read_config(tmp_path / "missing.yaml")


def test_a_key_that_stands_twice_in_a_config_file_is_no_matter_of_luck(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="line 2: the key 'n_tips' is given twice"):
        read_config(config(tmp_path, "n_tips: 3\nn_tips: 5\n"))


def test_several_ollama_endpoints_are_taken_apart() -> None:
    options = make_options({"ollama_url": "http://gpu1:11434/, https://gpu2"})
    assert options.ollama_url == "http://gpu1:11434,https://gpu2"
    assert options.ollama_urls == ("http://gpu1:11434", "https://gpu2")


@pytest.mark.parametrize(
    "url", [",", "http://a:1,b:1", "http://localhost:1,http://127.0.0.1:1/", "http://A,http://a:80"]
)
def test_endpoints_that_are_none_or_the_same_are_refused(url: str) -> None:
    (problem,) = problems(ollama_url=url)
    assert problem.startswith("ollama_url: ")
