"""Ctrl-C and SIGTERM: the first ends a command cleanly, the second only prints a notice, the third exits."""

import atexit
import os
import signal
from types import FrameType

STATUS = 130
_ENDING_MESSAGE = (
    b"\nStopping, which takes a moment: what is done is being stored. Interrupt once more to stop at once.\n"
)


class Interrupts:
    """A signal handler that raises KeyboardInterrupt only once: a second could break the clean-up at any line."""

    def __init__(self) -> None:
        self._received = 0

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        self._received += 1
        if self._received == 1:
            raise KeyboardInterrupt
        if self._received > 2:  # what was generated is in the journal
            os._exit(STATUS)
        os.write(2, _ENDING_MESSAGE)


def handle_interrupts(even_if_ignored: bool = False) -> None:
    """Install the handler for SIGTERM and Ctrl-C; with `even_if_ignored`, also if the parent process ignored Ctrl-C."""
    handler = Interrupts()
    if even_if_ignored or signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, handler)
    signal.signal(signal.SIGTERM, handler)
    atexit.register(_ignore_interrupts)


def _ignore_interrupts() -> None:
    """Ignore signals at exit, when Python removes its handlers: a late signal must not change the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
