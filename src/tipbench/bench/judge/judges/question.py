"""What a judge model is asked about an item: one criterion, or one flag that code can't check, at a time."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from tipbench.bench.suites.contract import without_thoughts
from tipbench.bench.suites.rubric import Rubric


class Question(NamedTuple):
    """One question with its allowed answers: whole numbers, or true and false."""

    name: str
    asks: str
    key: str  # the answer's name in the JSON that is asked for
    allowed: tuple[int, ...] | tuple[bool, ...]

    @property
    def is_flag(self) -> bool:
        return isinstance(self.allowed[0], bool)

    @property
    def schema(self) -> Mapping[str, Any]:
        answer = {"type": "boolean"} if self.is_flag else {"type": "integer", "enum": list(self.allowed)}
        return {
            "type": "object",
            "properties": {self.key: answer},
            "required": [self.key],
            "additionalProperties": False,
        }

    @property
    def form(self) -> str:
        """The answer's form in words."""
        if self.is_flag:
            return f'{{"{self.key}": true}} or {{"{self.key}": false}}'
        return f'{{"{self.key}": N}}, where N is a whole number from {self.allowed[0]} to {self.allowed[-1]}'

    def read(self, answer: str) -> int | bool | None:
        """The value in a model's answer; None where there is none, or none that is allowed."""
        try:
            data = json.loads(without_thoughts(answer).strip())
        except (ValueError, RecursionError):
            return None
        value = data.get(self.key) if isinstance(data, dict) else None
        if isinstance(value, int) and isinstance(value, bool) == self.is_flag and value in self.allowed:
            return value
        return None


def questions(rubric: Rubric) -> list[Question]:
    """Everything that a judge has to fill in for an item."""
    scored = [
        Question(
            name,
            criterion.question or f"How good is the text in this respect: {_said(name)}?",
            "score",
            tuple(range(criterion.min, criterion.max + 1)),
        )
        for name, criterion in rubric.criteria.items()
    ]
    flagged = [
        Question(name, flag.question or f"Is this so: {_said(name)}?", "answer", (False, True))
        for name, flag in rubric.flags.items()
        if flag.check is None
    ]
    return [*scored, *flagged]


def _said(name: str) -> str:
    return name.replace("_", " ")
