"""A rubric's Markdown as HTML: headings, paragraphs, lists, quotes, fenced text, bold, emphasis and code.

Everything is escaped before a tag is put around it, and links stay text: a suite may come from anybody.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from markupsafe import Markup, escape

from tipbench.core.untrusted import printable

_FENCE = "```"
_HEADING = re.compile(r"(#{1,6}) +(.*?)[ #]*$")
_ITEM = re.compile(r" *(?:[-*+]|(\d{1,9})[.)]) +(.*)$")
_CODE = re.compile(r"`([^`\n]+)`")
_BOLD = re.compile(r"\*\*(?=\S)([^*]+|[^*]+\*[^*]+\*[^*]*)(?<=\S)\*\*")
_EMPHASIS = re.compile(r"\*(?=\S)([^*]+)(?<=\S)\*")


class _Block(NamedTuple):
    """Lines that belong together, by what they are: p, h, ul, ol, quote or pre."""

    kind: str
    lines: list[str]


def rubric_html(text: str) -> Markup:
    """The whole text; headings start at h3, since the page has its own."""
    return Markup("\n").join(_drawn(block) for block in _blocks(printable(text).split("\n")))


def _blocks(lines: Iterable[str]) -> Iterator[_Block]:
    block: _Block | None = None
    for line in lines:
        if block and block.kind == "pre":
            if line.strip() == _FENCE:
                yield block
                block = None
            else:
                block.lines.append(line)
            continue
        kind, rest = _kind(line)
        if block and _goes_on(block, kind, line):
            _append(block, kind, rest)
            continue
        if block:
            yield block
        block = None if kind == "" else _Block(kind, [] if kind == "pre" else [rest])
    if block:
        yield block


def _kind(line: str) -> tuple[str, str]:
    if not line.strip():
        return "", ""
    if line.lstrip().startswith(_FENCE):
        return "pre", ""
    if _HEADING.match(line):
        return "h", line
    if line.startswith(">"):
        return "quote", line[1:].strip()
    if item := _ITEM.match(line):
        return ("ol" if item[1] else "ul"), item[2]
    return "p", line.strip()


def _goes_on(block: _Block, kind: str, line: str) -> bool:
    if block.kind in ("ul", "ol"):
        return kind == block.kind or (kind == "p" and line.startswith(" "))
    return block.kind == kind and kind in ("p", "quote")


def _append(block: _Block, kind: str, rest: str) -> None:
    if block.kind in ("ul", "ol") and kind == "p":
        block.lines[-1] += f" {rest}"
    else:
        block.lines.append(rest)


def _drawn(block: _Block) -> Markup:
    if block.kind == "pre":
        return Markup("<pre>{}</pre>").format("\n".join(block.lines))
    if block.kind == "h":
        heading = _HEADING.match(block.lines[0])
        level = min(6, len(heading[1]) + 2) if heading else 3
        return Markup("<h{level}>{text}</h{level}>").format(level=level, text=_inline(heading[2] if heading else ""))
    if block.kind in ("ul", "ol"):
        items = Markup("").join(Markup("<li>{}</li>").format(_inline(line)) for line in block.lines)
        return Markup("<{kind}>{items}</{kind}>").format(kind=block.kind, items=items)
    tag = "blockquote" if block.kind == "quote" else "p"
    return Markup("<{tag}>{text}</{tag}>").format(tag=tag, text=_inline(" ".join(block.lines)))


def _inline(text: str) -> Markup:
    pieces = _CODE.split(text)  # every second one stood between backticks
    drawn = [Markup("<code>{}</code>").format(piece) if n % 2 else _marked(piece) for n, piece in enumerate(pieces)]
    return Markup("").join(drawn)


def _marked(text: str) -> Markup:
    bold = _BOLD.sub(r"<strong>\1</strong>", str(escape(text)))
    return Markup(_EMPHASIS.sub(r"<em>\1</em>", bold))  # escaped above
