"""A loaded suite gives what is asked for by name and number, or says what it has."""

import pytest

from tipbench.bench.suites.load import load_suite
from tipbench.core.errors import InvalidInput

SUITE = load_suite("tip")


def test_a_prompt_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(InvalidInput, match="v1, v2-mentor, v3-few-shot"):
        SUITE.prompt("v9")


def test_more_scenarios_than_there_are_is_refused() -> None:
    with pytest.raises(InvalidInput, match="--n-scenarios 9 is more than suite 'tip' has: 8"):
        SUITE.first_scenarios(9)


def test_only_a_prompt_with_a_system_text_sends_a_system_message() -> None:
    roles = {
        version: [message.role for message in next(SUITE.messages(prompt, SUITE.scenarios, 5, False))]
        for version, prompt in SUITE.prompts.items()
    }
    assert roles == {"v1": ["user"], "v2-mentor": ["system", "user"], "v3-few-shot": ["user"]}
