"""Acts that change which policy is live, and where they are kept."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import from_json

from tipbench.core.errors import Conflict, StateDamaged
from tipbench.core.untrusted import shown

FIRST = "egreedy"  # live until something is promoted
_YEAR_9999_MS = 253_370_764_800_000


class Act(BaseModel):
    """`candidate` is who is live from then on, with features and parameters, as a gate's record has it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)

    schema_version: Literal[1] = Field(default=1, alias="schema")
    at_ms: Annotated[int, Field(ge=0, lt=_YEAR_9999_MS)]
    act: Literal["promote", "rollback"]
    left: str = Field(alias="from")  # the policy that was live until then
    to: str
    gate: str | None
    replay: str | None
    candidate: dict[str, Any]

    def as_json(self) -> str:
        return self.model_dump_json(by_alias=True)


class Promotions(Protocol):
    """Only ever added to. An act that anybody can read is durable."""

    @property
    def address(self) -> str:
        """As it may be shown."""
        ...

    @property
    def look_again_s(self) -> float:
        """How old an answer of `mark` may get: nothing where asking costs nothing."""
        ...

    def mark(self) -> object:
        """Another one whenever something was added."""
        ...

    def history(self) -> tuple[Act, ...]:
        """Oldest first. Raises StateDamaged rather than leave anything out."""
        ...

    def append(self, act: Act, known: int) -> None:
        """Raises Conflict where there are not as many acts as whoever decided on this one knew of."""
        ...


def read_acts(lines: Iterable[str | bytes], address: str) -> tuple[Act, ...]:
    acts = tuple(_act(line, number, address) for number, line in enumerate(lines, 1))
    live_history(acts, address)
    return acts


def is_act(line: bytes) -> bool:
    try:
        _parsed(line)
    except ValueError:
        return False
    return True


def live_history(acts: Sequence[Act], address: str) -> list[str]:
    """The policies that are live one in place of the other, the last one now: a rollback takes the last one off."""
    live = [FIRST]
    for number, act in enumerate(acts, 1):
        left = live[-1]
        if act.act == "promote":
            live.append(act.to)
        else:
            live.pop()
        if not live or (act.left, act.to) != (left, live[-1]):
            raise StateDamaged(
                f"act {number} in {address} is a {act.act} from {shown(act.left)} to {shown(act.to)}, which does not "
                f"follow from those before it, after which {shown(left)} was live; bring a backup of it back"
            )
    return live


def was_changed(acts: Sequence[Act], address: str) -> Conflict:
    return Conflict(
        f"somebody else was quicker: {live_history(acts, address)[-1]} is live now; look at it with "
        "'tipbench recommend promotions', and try again"
    )


def _parsed(line: str | bytes) -> Act:
    """JSON has no infinity; an act that holds one would not be written again as it was read."""
    return Act.model_validate(from_json(line, allow_inf_nan=False))


def _act(line: str | bytes, number: int, address: str) -> Act:
    try:
        return _parsed(line)
    except ValueError as error:  # pydantic's, too
        raise StateDamaged(
            f"act {number} in {address} is none that this tipbench knows; bring a backup of it back, or install the "
            "tipbench that wrote it"
        ) from error
