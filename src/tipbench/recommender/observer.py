"""What is told of a recommender's work as it happens, to be counted."""

from contextlib import AbstractContextManager
from typing import Literal, TypeVar

Status = Literal["applied", "duplicate", "late"]
_Opened = TypeVar("_Opened")


class Observer:
    """Is told of everything and does nothing with it. Subclasses must be quick, thread-safe, and never raise."""

    def transaction(
        self,
        operation: Literal["score", "reward"],  # noqa: ARG002
        opened: AbstractContextManager[_Opened],
    ) -> AbstractContextManager[_Opened]:
        """Return the store's transaction, or one that also times it."""
        return opened

    def decided(self, policy: str) -> None:
        """A candidate was chosen for a new event."""

    def rewarded(self, policy: str, status: Status, category: str | None, reward: float) -> None:
        """A reward came in: learned, the same as before, or too late. The category is None if it is not known."""

    def shadow_chose(self, shadow: str, agrees: bool) -> None:
        """A shadow policy's choice was published; it was what was served, or not."""

    def shadow_dropped(self, shadow: str) -> None:
        """A shadow policy failed, came too late, or had too much to do."""
