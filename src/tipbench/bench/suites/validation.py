"""Checks what a file holds against its shape, and says what is wrong by line."""

from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from tipbench.core.located_yaml import LocatedData

_Model = TypeVar("_Model")


def validated(adapter: TypeAdapter[_Model], located: LocatedData, name: str, problems: list[str]) -> _Model | None:
    problems.extend(f"{name}:{line}: {message}" for line, message in located.problems)
    if located.problems and located.data is None:
        return None
    try:
        checked = adapter.validate_python(located.data, strict=True)
        return None if located.problems else checked
    except ValidationError as error:
        for detail in error.errors():
            path = tuple(part for part in detail["loc"] if part != "[key]")
            where = ".".join(str(part) for part in path)
            message = str(detail["msg"]).removeprefix("Value error, ")
            if detail["type"] == "extra_forbidden":
                message = "there is no such key here; a typo?"
            elif detail["type"] == "missing":
                message = "is missing"
            problems.append(f"{name}:{located.line(path)}: {where + ': ' if where else ''}{message}")
        return None
