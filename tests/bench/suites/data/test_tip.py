"""The built-in suite holds what the documentation promises of it."""

from itertools import product

import pytest

from tipbench.bench.suites.load import load_suite

SUITE = load_suite("tip")
PROMPTS = list(SUITE.prompts.values())


def text(version: str, scenario: int = 0, n_tips: int = 5, diversity: bool = False) -> str:
    (messages,) = SUITE.messages(SUITE.prompt(version), [SUITE.scenarios[scenario]], n_tips, diversity)
    return "\n".join(message.content for message in messages)


def test_four_personas_meet_both_time_slots_once_each() -> None:
    seen = [(scenario.factors["persona"], scenario.factors["time_slot"]) for scenario in SUITE.scenarios]
    assert len(seen) == 8
    assert set(seen) == set(product({persona for persona, _ in seen}, {"morning", "evening"}))
    assert len({persona for persona, _ in seen}) == 4


def test_the_three_prompts_and_the_rubric_are_there() -> None:
    assert list(SUITE.prompts) == ["v1", "v2-mentor", "v3-few-shot"]
    assert len({prompt.digest for prompt in PROMPTS}) == 3
    assert SUITE.rubric.name == "tip-v1"
    assert SUITE.experiment_prefix == "tip-bench-"


@pytest.mark.parametrize("n_tips", [1, 2, 5, 50])
@pytest.mark.parametrize("version", ["v1", "v2-mentor", "v3-few-shot"])
def test_every_prompt_names_the_number_of_tips_and_holds_the_scenario(version: str, n_tips: int) -> None:
    for index, scenario in enumerate(SUITE.scenarios):
        rendered = text(version, index, n_tips)
        assert f"JSON array of exactly {n_tips} string{'s' if n_tips > 1 else ''}." in rendered
        assert scenario.text in rendered
        assert "{{" not in rendered
        assert "{%" not in rendered


@pytest.mark.parametrize("version", ["v1", "v2-mentor", "v3-few-shot"])
def test_diversity_asks_for_tips_that_differ_where_there_are_several(version: str) -> None:
    assert "differ" in text(version, diversity=True)
    assert "differ" not in text(version, diversity=False)
    assert text(version, n_tips=1, diversity=True) == text(version, n_tips=1, diversity=False)


def test_no_two_scenarios_read_the_same() -> None:
    assert len({scenario.text for scenario in SUITE.scenarios}) == 8
    assert all(len(scenario.variables["tasks"]) >= 3 for scenario in SUITE.scenarios)
