"""Render a rubric's Markdown as HTML. Suites are untrusted, so HTML, links and images stay text."""

from functools import cache

from markdown_it import MarkdownIt
from markupsafe import Markup

from tipbench.core.untrusted import printable

_HEADING_OFFSET = 2  # the page has its own h1 and h2
_DISABLED = ("link", "image", "autolink", "reference", "html_inline", "html_block", "entity")


def rubric_html(text: str) -> Markup:
    """Render the whole text; headings start at h3."""
    tokens = _parser().parse(printable(text))
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + _HEADING_OFFSET)}"
        elif token.type == "fence":
            token.info = ""  # it would become a CSS class
    return Markup(_parser().renderer.render(tokens, _parser().options, {}))


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).disable(list(_DISABLED))
