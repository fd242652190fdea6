import pytest

from tests.server.ui.fake_desk import tip_suite
from tipbench.server.ui.rubric_markdown import rubric_html


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("One line\nand the next.\n\nAnother.", "<p>One line and the next.</p>\n<p>Another.</p>"),
        ("- a\n- b\n  goes on\n\n1. c", "<ul><li>a</li><li>b goes on</li></ul>\n<ol><li>c</li></ol>"),
        ("Text:\n- a", "<p>Text:</p>\n<ul><li>a</li></ul>"),
        ("**bold** and *weak* and `a*b*`", "<p><strong>bold</strong> and <em>weak</em> and <code>a*b*</code></p>"),
        ("**bold with *weak* in it**", "<p><strong>bold with <em>weak</em> in it</strong></p>"),
        ("2 * 3 * 4 ** 5", "<p>2 * 3 * 4 ** 5</p>"),
        ("# Top\n## Below", "<h3>Top</h3>\n<h4>Below</h4>"),
        ("> said\n> so", "<blockquote>said so</blockquote>"),
        ("```text\na  <b>\n\nc\n```\nd", "<pre>a  &lt;b&gt;\n\nc</pre>\n<p>d</p>"),
        ("```\nnever closed", "<pre>never closed</pre>"),
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
        '# "><svg onload=x>',
        "> <iframe>",
    ],
)
def test_nothing_of_the_text_becomes_markup(hostile: str) -> None:
    drawn = rubric_html(hostile)
    for mark in ("<script", "<img", "<b ", "<a", "<svg", "<iframe"):
        assert mark not in drawn


def test_marks_that_reorder_text_are_made_visible() -> None:
    assert rubric_html("a\u202eb\x1b[31m") == "<p>a\\u202eb\\u001b[31m</p>"


def test_the_built_in_rubric_is_drawn_without_a_mark_left() -> None:
    drawn = rubric_html(tip_suite().rubric.body)
    assert "**" not in drawn
    assert "```" not in drawn
    assert "<pre>composite = relevance" in drawn
    assert "\n#" not in drawn
