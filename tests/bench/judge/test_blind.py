"""What would tell a judge who wrote a text is marked; nothing else is touched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tipbench.bench.judge.sample import REDACTED, Redactor, families, families_shared

REDACTOR = Redactor(
    ["qwen2.5:0.5b", "embedded/smollm2:135m", "gemma3:1b", "openai/phi-3-mini"], ["v1", "v2-mentor", "v3-few-shot"]
)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("I am Qwen, created by Alibaba Cloud.", "I am […], created by […] Cloud."),
        ("QWEN2.5:0.5B says so; so does qwen3.", "[…] says so; so does […]."),
        ("As an AI language model, I can't. Call Jule.", "[…] I can't. Call Jule."),
        ("As a large language model I suggest rest.", "[…] I suggest rest."),
        ("By Google's Gemma 3 and Hugging Face's SmolLM2", "By […]'s […] 3 and […]'s […]"),
        ("phi-3-mini and Microsoft", "[…] and […]"),
        ("As v2-mentor would say", "As […] would say"),
        ("Qwen2.5-0.5B-Instruct, SmolLM2-135M.", "[…], […]."),
    ],
)
def test_what_a_model_says_about_itself_is_marked(written: str, shown: str) -> None:
    assert REDACTOR.redact(written) == shown


@pytest.mark.parametrize(
    "text",
    ["Philosophy helps.", "Version v1 of the plan", "As an aide, call Jule.", "Feed the llamas.", "Claude calls at 9."],
)
def test_other_words_stay(text: str) -> None:
    assert REDACTOR.redact(text) == text


def test_a_blindfold_for_nobody() -> None:
    assert Redactor([], []).redact("Call Jule, Qwen.") == "Call Jule, Qwen."
    assert Redactor(["a", "(", "x*"], ["["]).redact("a ( x* [") == "a ( x* ["


@given(st.text())
def test_covering_twice_is_covering_once(text: str) -> None:
    once = REDACTOR.redact(text)
    assert REDACTOR.redact(once) == once
    if REDACTED not in once:
        assert once == text


def test_families() -> None:
    assert families("qwen2.5:7b") == {"qwen"}
    assert families("openai/Llama-3.2-Qwen-merge") == {"llama", "qwen"}
    assert families("scripted/a") == frozenset()


def test_one_family() -> None:
    assert families_shared("qwen2.5:7b", ["ollama/qwen2.5:1.5b", "gemma3:1b"]) == {"qwen"}
    assert families_shared("openai/judge", ["qwen2.5:1.5b"]) == frozenset()
    assert families_shared("llama3", []) == frozenset()
