"""A fence around what a judge model is to look at: nothing within can close it, or pass for a part of the prompt."""

import re
from typing import NamedTuple

from tipbench.core.identity import data_digest
from tipbench.core.untrusted import printable

_TOKEN_LENGTH = 8
_TEMPLATE_MARK = re.compile(r"\[(?=/?[A-Z_]+\])")  # as in [INST], which some chat templates take for their own
_CLOSING = re.compile(">{3,}")


def without_marks(text: str) -> str:
    """A text that no chat template and no fence takes for its own: `<|im_end|>` becomes `< |im_end|>`."""
    text = printable(text).replace("<", "< ")
    text = _CLOSING.sub(lambda match: " ".join(match[0]), text)
    return _TEMPLATE_MARK.sub("[ ", text)


class Delimiters(NamedTuple):
    """A pair of lines with a token that whoever wrote the text can't have known."""

    token: str

    @classmethod
    def drawn(cls, *parts: str | int) -> "Delimiters":
        return cls(data_digest(["fence", *parts])[:_TOKEN_LENGTH])

    @property
    def opening(self) -> str:
        return f"<<<material {self.token}"

    @property
    def closing(self) -> str:
        return f"end {self.token}>>>"

    def around(self, text: str) -> str:
        """The fenced text; it must be without marks already."""
        inside = re.sub(re.escape(self.token), "[…]", text, flags=re.IGNORECASE)
        return f"{self.opening}\n{inside}\n{self.closing}"
