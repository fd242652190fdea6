"""Front matter: YAML between two `---` lines at the top of a Markdown file."""

from typing import NamedTuple


class FrontMatter(NamedTuple):
    yaml: str
    yaml_line: int
    body: str
    body_line: int


def split_front_matter(text: str) -> FrontMatter | None:
    """Split a text into its YAML and body, with their first lines; None if there is no closed front matter."""
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].strip() != "---":
        return None
    for index, line in enumerate(lines[1:], start=1):
        if line.strip() == "---":
            return FrontMatter("".join(lines[1:index]), 2, "".join(lines[index + 1 :]), index + 2)
    return None
