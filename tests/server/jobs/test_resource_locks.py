"""What jobs need to themselves, and whom they wait for."""

import pytest

from tipbench.bench.options import make_options
from tipbench.core.settings import Settings
from tipbench.server.jobs.job_watch import needs_of, what_it_waits_for

HERE = "ollama http://127.0.0.1:11434"


def needs(models: str, judge: str | None = None, judge_model: str = "", **given: str) -> set[str]:
    options = make_options({"models": models, "experiment": "e", "judge": judge, **given})
    found = set(needs_of(options, Settings({"TIPBENCH_JUDGE_MODEL": judge_model})))
    assert "experiment e" in found
    return found - {"experiment e"}


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        ("scripted/a,openai/b", set()),
        ("qwen2.5:0.5b,openai/b", {HERE}),
        ("embedded/smollm2:135m", {"embedded"}),
        ("embedded/smollm2:135m,hf.co/someone/model", {"embedded", HERE}),
    ],
)
def test_memory_is_what_is_short(models: str, expected: set[str]) -> None:
    assert needs(models) == expected


def test_a_judges_model_needs_memory_too() -> None:
    assert needs("scripted/a", "model", "qwen2.5:7b") == {HERE}
    assert needs("scripted/a", "model", "openai/judge") == set()
    assert needs("scripted/a", "lexical", "qwen2.5:7b") == set()


@pytest.mark.parametrize("url", ["http://localhost:11434/", "http://LOCALHOST:11434", "http://[::1]:11434"])
def test_one_endpoint_by_another_name_is_the_same(url: str) -> None:
    assert needs("a", ollama_url=url) == {HERE}


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://gpu:11434", "http://gpu:11434"),
        ("https://GPU/ollama/", "https://gpu:443/ollama"),
        ("http://[fe80::2]:1", "http://[fe80::2]:1"),
    ],
)
def test_others_are_others(url: str, expected: str) -> None:
    assert needs("a", ollama_url=url) == {f"ollama {expected}"}


def test_what_it_waits_for_is_told() -> None:
    taken = {HERE: "job j1 (a)", "embedded": "job j2 (b)", "experiment e": "job j3 (e)"}
    assert what_it_waits_for((HERE,), taken) == "waits for job j1 (a) at http://127.0.0.1:11434"
    assert what_it_waits_for(("embedded",), taken) == "waits for job j2 (b) on the embedded engine"
    assert (
        what_it_waits_for(("experiment e", HERE), taken) == "waits for job j3 (e), which writes to the same experiment"
    )
    assert what_it_waits_for(("experiment f", "ollama http://other:1"), taken) == ""
