import time

import pytest

from tests.server.ui.fake_desk import tip_suite
from tipbench.server.ui.rubric_markdown import rubric_html


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("One line\nand the next.\n\nAnother.", "<p>One line\nand the next.</p>\n<p>Another.</p>\n"),
        ("- a\n- b\n  goes on", "<ul>\n<li>a</li>\n<li>b\ngoes on</li>\n</ul>\n"),
        ("1. c", "<ol>\n<li>c</li>\n</ol>\n"),
        ("**bold** and *weak* and `a*b*`", "<p><strong>bold</strong> and <em>weak</em> and <code>a*b*</code></p>\n"),
        ("2 * 3 * 4 ** 5", "<p>2 * 3 * 4 ** 5</p>\n"),
        ("# Top\n## Below\n###### Deep", "<h3>Top</h3>\n<h4>Below</h4>\n<h6>Deep</h6>\n"),
        ("> said\n> so", "<blockquote>\n<p>said\nso</p>\n</blockquote>\n"),
        ("```text\na  <b>\n\nc\n```\nd", "<pre><code>a  &lt;b&gt;\n\nc\n</code></pre>\n<p>d</p>\n"),
        ("", ""),
    ],
)
def test_marks(text: str, html: str) -> None:
    assert rubric_html(text) == html


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "**<img src=x onerror=alert(1)>**",
        "`<b onclick=x>`",
        "- <a href='javascript:x'>",
        "[text](javascript:alert(1))",
        "[text](https://example.org) <https://example.org>",
        "![text](https://example.org/x.png)",
        "[text][1]\n\n[1]: https://example.org",
        "&lt;script&gt;&#60;b onclick=x&#62;",
        "```<img src=x onerror=x>\nx\n```",
        '# "><svg onload=x>',
        "> <iframe>",
    ],
)
def test_nothing_of_the_text_becomes_markup(hostile: str) -> None:
    drawn = rubric_html(hostile)
    for mark in ("<script", "<img", "<b ", "<a", "<svg", "<iframe"):
        assert mark not in drawn


def test_marks_that_reorder_text_are_made_visible() -> None:
    assert rubric_html("a\u202eb\x1b[31m") == "<p>a\\u202eb\\u001b[31m</p>\n"


def test_the_built_in_rubric_is_drawn_without_a_mark_left() -> None:
    drawn = rubric_html(tip_suite().rubric.body)
    assert "**" not in drawn
    assert "```" not in drawn
    assert "<pre><code>composite = relevance" in drawn
    assert "\n#" not in drawn


def test_a_text_that_nests_deeply_is_drawn_in_no_time() -> None:
    started = time.monotonic()
    for deep in (">" * 20_000, "- " * 20_000, "*a " * 20_000, "[" * 20_000, "`" * 20_000):
        rubric_html(deep)
    assert time.monotonic() - started < 20
