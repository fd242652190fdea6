"""Acts that change which policy is live, and the interface of their history."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import from_json

from tipbench.core.errors import Conflict, StateDamaged
from tipbench.core.untrusted import shown

FIRST = "egreedy"  # live until something is promoted
_YEAR_9999_MS = 253_370_764_800_000


class Act(BaseModel):
    """A promotion or rollback. `candidate` describes the policy that goes live, as a gate's record does."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)

    schema_version: Literal[1] = Field(default=1, alias="schema")
    at_ms: Annotated[int, Field(ge=0, lt=_YEAR_9999_MS)]
    act: Literal["promote", "rollback"]
    left: str = Field(alias="from")  # the policy that was live before
    to: str
    gate: str | None
    replay: str | None
    candidate: dict[str, Any]

    def as_json(self) -> str:
        return self.model_dump_json(by_alias=True)


class Promotions(Protocol):
    """An append-only history of acts. An act that can be read is durable."""

    @property
    def address(self) -> str:
        """Where the history is, in a form that may be shown."""
        ...

    @property
    def poll_interval_s(self) -> float:
        """How long a result of `revision` may be cached; 0 where getting it is cheap."""
        ...

    def revision(self) -> object:
        """Return a value that changes whenever an act is added."""
        ...

    def history(self) -> tuple[Act, ...]:
        """Return all acts, oldest first; raise StateDamaged rather than omit any."""
        ...

    def append(self, act: Act, known: int) -> None:
        """Append an act; raise Conflict unless there are exactly `known` acts, the number when it was decided."""
        ...


def read_acts(lines: Iterable[str | bytes], address: str) -> tuple[Act, ...]:
    acts = tuple(_act(line, number, address) for number, line in enumerate(lines, 1))
    live_history(acts, address)
    return acts


def is_act(line: bytes) -> bool:
    try:
        _parse(line)
    except ValueError:
        return False
    return True


def live_history(acts: Sequence[Act], address: str) -> list[str]:
    """Return the stack of live policies, the current one last: a promotion pushes one, a rollback pops it.

    Raises StateDamaged for an act that does not follow from those before it.
    """
    live = [FIRST]
    for number, act in enumerate(acts, 1):
        left = live[-1]
        if act.act == "promote":
            live.append(act.to)
        else:
            live.pop()
        if not live or (act.left, act.to) != (left, live[-1]):
            raise StateDamaged(
                f"entry {number} in {address} is a {act.act} from {shown(act.left)} to {shown(act.to)}, which does "
                f"not fit the entries before it, after which {shown(left)} was live; restore it from a backup"
            )
    return live


def changed_error(acts: Sequence[Act], address: str) -> Conflict:
    return Conflict(
        f"somebody else changed it first: {live_history(acts, address)[-1]} is live now; see 'tipbench recommend "
        "promotions', then try again"
    )


def _parse(line: str | bytes) -> Act:
    """Parse an act; raise ValueError if it is malformed. Infinities, which JSON can't represent, are rejected."""
    return Act.model_validate(from_json(line, allow_inf_nan=False))


def _act(line: str | bytes, number: int, address: str) -> Act:
    try:
        return _parse(line)
    except ValueError as error:  # includes pydantic's ValidationError
        raise StateDamaged(
            f"entry {number} in {address} is unknown to this version of tipbench; restore it from a backup, or "
            "install the version of tipbench that wrote it"
        ) from error
