"""Render Markdown as HTML. Suites are untrusted, so HTML, links and images in a rubric stay text."""

from functools import cache

from markdown_it import MarkdownIt
from markupsafe import Markup

from tipbench.core.untrusted import printable

_HEADING_OFFSET = 2  # the page has its own h1 and h2
_DISABLED = ("link", "image", "autolink", "reference", "html_inline", "html_block", "entity")


def rubric_html(text: str, heading_offset: int = _HEADING_OFFSET) -> Markup:
    """Render the whole text; headings start at h3."""
    tokens = _parser().parse(printable(text))
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + heading_offset)}"
        elif token.type == "fence":
            token.info = ""  # it would become a CSS class
    return Markup(_parser().renderer.render(tokens, _parser().options, {}))


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table").disable(list(_DISABLED))
