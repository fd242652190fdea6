"""What is said of a store that can't be used: it is locked, in use, or its states are elsewhere."""

from tipbench.core.errors import LockTaken, StateRefused, StoreUnreachable
from tipbench.core.text import utc_minute
from tipbench.recommender.store.interface import Mark

PATIENCE_S = 5.0  # that somebody waits for a lock whose holder may be frozen


def is_locked(what: str) -> StoreUnreachable:
    return StoreUnreachable(
        f"somebody else has held {what} for {PATIENCE_S:.0f} s; try again, and see whether a process is frozen"
    )


def is_used(address: str) -> LockTaken:
    return LockTaken(
        f"the states in {address} are in use; end 'tipbench recommend serve' wherever it runs, and try again"
    )


def is_moved_now(address: str) -> LockTaken:
    return LockTaken(f"the states in {address} are being moved just now; wait until that is done")


def check_unmarked(mark: Mark | None, name: str, address: str) -> None:
    """Raises StateRefused for a store that is not to be served from."""
    if mark is None:
        return
    began = utc_minute(mark.at_ms)
    if mark.kind == "MOVED":
        raise StateRefused(
            f"the states in {address} were moved to {mark.address} on {began}; set TIPBENCH_STATE={mark.store}, or "
            f"bring them back: tipbench recommend move {mark.store} {name}"
        )
    raise StateRefused(
        f"{address} has only a part of the states: moving them from {mark.address} on {began} was cut off; go on with: "
        f"tipbench recommend move {mark.store} {name}"
    )
