"""How many tokens a text takes, guessed without its model's tokenizer, and texts cut to what there is room for."""

import re
from collections.abc import Iterator
from itertools import accumulate

_PIECE = re.compile(r"[A-Za-z]{1,12}|\s|.", re.DOTALL)
CUT = " […]"


def tokens(text: str) -> int:
    """Rather too many than too few: a word takes a token for every three letters, anything else one a byte."""
    return sum(_costs(text))


def cut(text: str, room: int) -> str:
    """The text as it is, or as much of its beginning as there is room for, with a mark."""
    if len(text.encode("utf-8", "surrogatepass")) <= room or tokens(text) <= room:
        return text
    room -= tokens(CUT)
    ends = (match.end() for match in _PIECE.finditer(text))
    fitting = [end for end, total in zip(ends, accumulate(_costs(text)), strict=True) if total <= room]
    return (text[: fitting[-1]] if fitting else "").rstrip() + CUT


def _costs(text: str) -> Iterator[int]:
    for match in _PIECE.finditer(text):
        piece = match[0]
        if piece == " ":
            yield 0
        elif piece.isascii():
            yield 1 + len(piece) // 4
        else:
            yield len(piece.encode("utf-8", "surrogatepass"))
