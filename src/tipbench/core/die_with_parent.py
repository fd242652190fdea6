"""Starts a command that ends when whoever started it does, however that ended.

    python -m tipbench.core.die_with_parent 4711 recommend serve    # 4711 is the starter

On Linux the kernel sees to it. Elsewhere a starter that was killed leaves the command running.
"""

import ctypes
import os
import signal
import sys

_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def tied_to_parent(*arguments: str) -> list[str]:
    """The command line of tipbench with these arguments, tied to this process."""
    return [sys.executable, "-m", __name__, str(os.getpid()), *arguments]


def main() -> None:
    starter, *arguments = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGTERM)
    if os.getppid() != int(starter):
        return  # it was gone before the kernel knew
    os.execv(sys.executable, [sys.executable, "-m", "tipbench", *arguments])


if __name__ == "__main__":
    main()
