"""Ctrl-C and TERM: the first ends a command tidily, the second can't break that off, the third ends it at once."""

import atexit
import os
import signal
from types import FrameType

STATUS = 130
_ENDING = b"\nEnding, which takes a moment: what is done gets stored. Once more ends it at once.\n"


class Interrupts:
    """A signal handler. It raises KeyboardInterrupt once: raised again, it could break the clean-up at any line."""

    def __init__(self) -> None:
        self._received = 0

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        self._received += 1
        if self._received == 1:
            raise KeyboardInterrupt
        if self._received > 2:  # what was generated stands in the journal
            os._exit(STATUS)
        os.write(2, _ENDING)


def handle_interrupts(also_ignored: bool = False) -> None:
    """TERM ends a command as Ctrl-C does. `also_ignored`: even where whoever started it had Ctrl-C ignored."""
    handler = Interrupts()
    if also_ignored or signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, handler)
    signal.signal(signal.SIGTERM, handler)
    atexit.register(_ignore_interrupts)


def _ignore_interrupts() -> None:
    """All is done, and Python takes its handlers away: a signal that comes now must not change the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
