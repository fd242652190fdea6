"""A page as a browser would take it apart."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = {"meta", "br", "hr", "img", "input", "link"}


@dataclass
class Node:
    """An element with its texts and elements, in order."""

    tag: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    inside: list["Node | str"] = field(default_factory=list)

    def all(self, tag: str = "", kind: str = "") -> Iterator["Node"]:
        for one in self.inside:
            if isinstance(one, Node):
                if tag in ("", one.tag) and (not kind or kind in (one.attributes.get("class") or "").split()):
                    yield one
                yield from one.all(tag, kind)

    @property
    def text(self) -> str:
        return "".join(one if isinstance(one, str) else one.text for one in self.inside)

    @property
    def words(self) -> str:
        return " ".join(self.text.split())


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("")
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        node = self.open[-1].inside[-1]
        if tag not in _VOID and isinstance(node, Node):
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].inside.append(Node(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> ends <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].inside.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def parsed(page: str) -> Node:
    """Every element must end where it should."""
    builder = _Builder()
    builder.feed(page)
    builder.close()
    assert builder.open == [builder.root]
    return builder.root
