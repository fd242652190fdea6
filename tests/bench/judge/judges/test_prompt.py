"""The prompt: its part of the rubric, both texts within fences, and never more than there is room for."""

import pytest

from tests.bench.judge.judges.files import CLEAR, HOSTILE, SCENARIO, TIP
from tipbench.bench.judge.judges.prompt import Delimiters, PromptBuilder, estimate_tokens, general_rules, questions
from tipbench.bench.suites.rubric import Criterion, Rubric, RubricFront, parse_rubric

FENCE = Delimiters.derive(7, "slot")
ROOM = 3456


def test_it_holds_the_criterions_own_section_and_what_stands_before_all() -> None:
    system, user = PromptBuilder(TIP, ROOM).build(questions(TIP)[1], SCENARIO, "Call Piet.", FENCE).messages
    assert (system.role, user.role) == ("system", "user")
    assert "One filmable step with its time" in system.content
    assert all(f"### {level}\n" in system.content for level in range(1, 6))
    assert "**Judge each tip as if it stood alone.**" in system.content
    assert "**B. Yusuf, bus driver.**" in system.content
    assert "Anke must agree first and answers until 21:30" in system.content
    assert not [other for other in ("## Relevance", "## Tone", "## Flags", "composite =") if other in system.content]
    assert user.content.count(FENCE.opening) == user.content.count(FENCE.closing) == 2
    assert f"{FENCE.opening}\nCall Piet.\n{FENCE.closing}" in user.content
    assert user.content.index(SCENARIO) < user.content.index("Call Piet.")
    assert '"score": N' in user.content.rpartition(FENCE.closing)[2]


@pytest.mark.parametrize("room", [-128, 400, 1000, ROOM])
@pytest.mark.parametrize("rubric", [TIP, CLEAR], ids=["tip", "clear"])
@pytest.mark.parametrize(
    "hostile", [*HOSTILE.values(), "語" * 20_000, "x" * 20_000], ids=[*HOSTILE, "wide", "one word"]
)
def test_it_fits_and_a_candidate_pushes_nothing_out(hostile: str, rubric: Rubric, room: int) -> None:
    prompts, question = PromptBuilder(rubric, room), questions(rubric)[0]
    plain = prompts.build(question, SCENARIO, "Call Piet.", FENCE)
    made = prompts.build(question, SCENARIO, hostile, FENCE)
    assert made.messages[0] == plain.messages[0]
    assert made.messages[1].content.count(">>>") == 2
    if room > 1000:
        assert sum(estimate_tokens(message.content) for message in made.messages) <= room
        assert made.is_whole is (len(hostile) < 3000)


def test_a_section_that_is_too_long_keeps_the_beginning_of_every_level() -> None:
    levels = "".join(f"### {n}\nLevel {n} begins. {'More and more of it. ' * 300}\n" for n in (1, 2, 3))
    rubric = parse_rubric(f"---\nname: r\ncriteria:\n  a: {{min: 1, max: 3}}\n---\n## A\n{levels}")
    system = PromptBuilder(rubric, ROOM).build(questions(rubric)[0], SCENARIO, "x", FENCE).messages[0].content
    assert [f"Level {n} begins." in system for n in (1, 2, 3)] == [True, True, True]
    assert estimate_tokens(system) < ROOM / 2


def test_half_the_room_is_half_the_candidate() -> None:
    prompts, question = PromptBuilder(CLEAR, ROOM), questions(CLEAR)[0]
    lengths = [
        len(prompts.build(question, SCENARIO, "word " * 9000, FENCE, share).messages[1].content) for share in (1.0, 0.5)
    ]
    assert lengths[1] < 0.6 * lengths[0]


@pytest.mark.parametrize("body", ["", "Be fair.", "# Title\n\nBe fair.\n\n```\nx = 1\n```\n\n## Other\nNothing."])
def test_general_rules_of_bodies_without_sections(body: str) -> None:
    rubric = Rubric("", RubricFront(name="r", criteria={"a": Criterion(min=1, max=2)}), body)
    assert general_rules(rubric) == ("Be fair." if body else "")
    assert PromptBuilder(rubric, ROOM).build(questions(rubric)[0], SCENARIO, "x", FENCE).is_whole
