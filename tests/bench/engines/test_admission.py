"""Admission: sizes are held against the limit before anything is generated, all problems in one message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tipbench.bench.engines.admission import admit, parameters_from_name
from tipbench.bench.engines.scripted import ScriptedEngine
from tipbench.bench.records import ModelInfo
from tipbench.core.errors import EngineUnreachable, ModelMissing, Problems


class Shelf(ScriptedEngine):
    """An engine with the models that a test puts on it."""

    def __init__(self, *infos: ModelInfo) -> None:
        super().__init__()
        self.infos = {info.name: info for info in infos}

    def describe(self, model: str) -> ModelInfo:
        if model not in self.infos:
            raise ModelMissing(f"{model}: not on the shelf")
        return self.infos[model]


SMALL = ModelInfo("small", "ollama", 1_500_000_000, "metadata")
LIAR = ModelInfo("liar:1b", "ollama", 9_241_705_984, "metadata")
BY_NAME = ModelInfo("big:70b", "ollama", 70_000_000_000, "name")
UNKNOWN = ModelInfo("who-knows", "openai")
EXACT = ModelInfo("exact:4b", "ollama", 4_000_000_000, "metadata")


def refused(*models: str, limit: float = 4.0) -> tuple[str, ...]:
    shelf = Shelf(SMALL, LIAR, BY_NAME, UNKNOWN, EXACT)
    with pytest.raises(Problems) as caught:
        admit(models, lambda _model: shelf, limit)
    assert all(problem in str(caught.value) for problem in caught.value.problems)
    return caught.value.problems


def test_models_within_the_limit_are_described_in_order() -> None:
    shelf = Shelf(SMALL, EXACT)
    assert admit(["exact:4b", "small"], lambda _model: shelf, 4.0) == [EXACT, SMALL]


def test_the_metadata_counts_and_not_the_name() -> None:
    [problem] = refused("liar:1b")
    assert problem.startswith("liar:1b: 9.24 billion parameters (by its metadata) is over the limit of 4 billion;")


def test_a_size_from_the_name_is_said_to_be_that() -> None:
    [problem] = refused("big:70b")
    assert "70.00 billion parameters (by its name, since the engine does not say)" in problem


def test_all_problems_are_told_at_once() -> None:
    missing, large, unknown = refused("gone", "small", "liar:1b", "who-knows")
    assert missing == "gone: not on the shelf"
    assert large.startswith("liar:1b")
    assert unknown.startswith("who-knows: its size is unknown")


def test_a_limit_of_0_lifts_it_and_still_wants_the_models_there() -> None:
    shelf = Shelf(LIAR, UNKNOWN)
    assert admit(["liar:1b", "who-knows"], lambda _model: shelf, 0) == [LIAR, UNKNOWN]
    assert refused("gone", limit=0) == ("gone: not on the shelf",)


def test_an_engine_that_is_not_there_ends_it() -> None:
    class Gone(ScriptedEngine):
        def describe(self, model: str) -> ModelInfo:
            raise EngineUnreachable("nobody there")

    with pytest.raises(EngineUnreachable):
        admit(["a", "b"], lambda _model: Gone(), 4.0)
    with pytest.raises(Problems, match="b:70b: 70 billion"):  # no use to start it for that
        admit(["a", "b:70b"], lambda _model: Gone(), 4.0)


@pytest.mark.parametrize(
    ("model", "billions"),
    [
        ("llama3.1:70b", "70"),
        ("qwen2.5:14b-instruct-q4_K_M", "14"),
        ("openai/meta-llama/Llama-3.1-8B-Instruct", "8"),
        ("hf.co/org/Model-7B-GGUF:Q4_K_M", "7"),
        ("embedded/gemma3:12b", "12"),
        ("mixtral:8x7b", "more than 7"),
        ("qwen3:30b-a3b", "30"),
        ("qwen2.5-7b-instruct-1m", "7"),
    ],
)
def test_a_name_that_says_too_large_is_refused_for_that_and_not_for_being_missing(model: str, billions: str) -> None:
    [problem] = refused(model)
    assert problem.startswith(f"{model}: {billions} billion parameters (by its name) is over the limit of 4 billion;")
    assert refused(model, limit=0) == (f"{model}: not on the shelf",)
    assert refused(model, limit=70) == (f"{model}: not on the shelf",)


@pytest.mark.parametrize(
    "model",
    [
        *(
            "qwen2.5:3b",
            "gemma3:4b",
            "smollm2:135m",
            "phi3:mini",
            "mixtral:8x2b",
            "llama3.2",
            "model:900m",
            "model:8bit",
        ),
        *("org/3b-from-70b", "embedded//models/70b/small.gguf", "gemma3n:e4b"),
    ],
)
def test_a_name_that_leaves_it_open_is_only_missing(model: str) -> None:
    assert refused(model) == (f"{model}: not on the shelf",)


def test_a_model_that_is_there_goes_by_what_the_engine_says() -> None:
    modest = ModelInfo("modest:70b", "ollama", 1_000_000_000, "metadata")
    assert admit([modest.name], lambda _model: Shelf(modest), 4.0) == [modest]
    silent = ModelInfo("openai/silent-8b", "openai")
    with pytest.raises(Problems, match=r"openai/silent-8b: 8 billion parameters \(by its name\)"):
        admit([silent.name], lambda _model: Shelf(silent), 4.0)
    small = ModelInfo("openai/silent-3b", "openai")
    with pytest.raises(Problems, match="its size is unknown"):
        admit([small.name], lambda _model: Shelf(small), 4.0)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("qwen2.5:1.5b", 1_500_000_000),
        ("qwen2.5:0.5b", 500_000_000),
        ("smollm2:135m", 135_000_000),
        ("llama3.2:3b-instruct-q4", 3_000_000_000),
        ("gemma3:270m", 270_000_000),
        ("hf.co/org/Model-7B-GGUF:Q4_K_M", 7_000_000_000),
        ("qwen3:30b-a3b", 30_000_000_000),
        ("134.52M", 134_520_000),
        ("phi3", None),
        ("mixtral:8x7b", None),  # rather unknown than 7 billion
        ("gemma3n:e2b", None),
        ("llama3.2", None),
        ("model:3bit", None),
        ("v1.2.3b", None),
        ("9" * 400 + "b", None),
        ("model:0b", None),
        ("", None),
    ],
)
def test_the_size_that_a_name_claims(name: str, parameters: int | None) -> None:
    assert parameters_from_name(name) == parameters


@given(
    st.from_regex(r"[a-z]{1,8}[0-9]?(\.[0-9])?", fullmatch=True),
    st.integers(1, 999_999),
    st.sampled_from(["b", "B", "m", "M"]),
    st.sampled_from(["", "-instruct", "-q4_0", ":latest", "-it-qat"]),
)
def test_a_size_behind_the_colon_is_found(family: str, size: int, unit: str, rest: str) -> None:
    expected = size * (10**9 if unit in "bB" else 10**6)
    assert parameters_from_name(f"{family}:{size}{unit}{rest}") == expected


@given(st.text())
def test_any_text_is_a_name(name: str) -> None:
    found = parameters_from_name(name)
    assert found is None or found > 0
