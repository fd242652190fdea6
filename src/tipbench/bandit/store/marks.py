"""What is said of a store that can't be opened: it is in use, or its states are elsewhere."""

from datetime import UTC, datetime

from tipbench.bandit.store.interface import Mark
from tipbench.errors import StateRefused, TurnTaken


def is_used(address: str) -> TurnTaken:
    return TurnTaken(
        f"the states in {address} are in use; end 'tipbench recommend serve' wherever it runs, and try again"
    )


def is_moved_now(address: str) -> TurnTaken:
    return TurnTaken(f"the states in {address} are being moved just now; wait until that is done")


def check_unmarked(mark: Mark | None, name: str, address: str) -> None:
    """Raises StateRefused for a store that is not to be served from."""
    if mark is None:
        return
    began = datetime.fromtimestamp(mark.at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    if mark.kind == "MOVED":
        raise StateRefused(
            f"the states in {address} were moved to {mark.address} on {began}; set TIPBENCH_STATE={mark.store}, or "
            f"bring them back: tipbench recommend move {mark.store} {name}"
        )
    raise StateRefused(
        f"{address} has only a part of the states: moving them from {mark.address} on {began} was cut off; go on with: "
        f"tipbench recommend move {mark.store} {name}"
    )
