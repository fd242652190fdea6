"""Front matter and body are taken apart, and both keep their place in the file."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tipbench.bench.suites.front_matter import split_front_matter

LINES = st.lists(st.text(alphabet="ab: -", max_size=5).filter(lambda line: line.strip() != "---"), max_size=5)


def test_a_text_without_a_closed_front_matter_has_none() -> None:
    assert split_front_matter("") is None
    assert split_front_matter("a\n---\nb: 1\n---\n") is None
    assert split_front_matter("---\na: 1\n") is None


@settings(max_examples=100)
@given(front=LINES, body=LINES)
def test_the_lines_of_both_parts_are_those_of_the_file(front: list[str], body: list[str]) -> None:
    text = "\n".join(["---", *front, "---", *body])
    split = split_front_matter(text)
    assert split is not None
    lines = text.split("\n")
    assert split.yaml.split("\n")[:-1] == lines[split.yaml_line - 1 :][: len(front)]
    assert split.body == "\n".join(lines[split.body_line - 1 :])
