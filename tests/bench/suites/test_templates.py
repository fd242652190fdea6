"""Templates come from strangers: they can compute a text and nothing else, and their mistakes have a line."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tipbench.bench.suites.templates import TemplateProblem, TextTemplate

PIECES = st.sampled_from(
    (
        *(
            "{{",
            "}}",
            "{%",
            "%}",
            "{#",
            "#}",
            " ",
            "x",
            "y",
            ".",
            "|",
            "(",
            ")",
            "[",
            "]",
            "=",
            "'",
            "\n",
            "-",
            "\ud800",
        ),
        *("if", "for", "in", "endif", "endfor", "set", "macro", "endmacro", "include", "import", "upper", "nope", "1"),
    )
)


@settings(deadline=None, max_examples=100)
@given(source=st.one_of(st.text(), st.lists(PIECES, max_size=25).map("".join)))
def test_any_source_renders_or_has_a_problem_with_a_line(source: str) -> None:
    problem = None
    try:
        TextTemplate(source).render({"x": 1})
    except TemplateProblem as caught:
        problem = caught
    assert problem is None or 1 <= problem.line <= len(source.splitlines()) + 1


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("one\n{{ missing }}", 2),
        ("one\n\n{% if x %}\n{{ x.missing }}\n{% endif %}", 4),
        ("one\n{% if x %}\n{{ x", 3),
        ("one\n{{ x | nope }}", 2),
        ("one\n{{ 1 / 0 }}", 2),
        ("one\n{{ x.__class__.__mro__ }}", 2),
        ("{% macro f() %}{{ f() }}{% endmacro %}\n{{ f() }}", 1),
        ("one\n{{ 'a' * 10 ** 12 }}", 2),
        ("{{ " + "1" * 5000 + " }}", 1),
        ("{{ " + "(" * 5000, 1),
        ("one\n{% include 'x' %}", 2),
        ("one\n{% for i in range(10 ** 9) %}{% endfor %}", 2),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_mistake_is_told_with_its_line(source: str, line: int) -> None:
    with pytest.raises(TemplateProblem) as caught:
        TextTemplate(source).render({"x": "text"})
    assert caught.value.line == line


def test_a_template_can_not_change_what_it_is_given() -> None:
    values = {"tasks": ["one"]}
    with pytest.raises(TemplateProblem):
        TextTemplate("{{ tasks.append('two') }}").render(values)
    assert values == {"tasks": ["one"]}


def test_text_is_left_as_it_is_but_for_outer_space() -> None:
    assert TextTemplate("\n {{ x }}\n").render({"x": "<b> & 'c'"}) == "<b> & 'c'"
