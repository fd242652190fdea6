"""Run a tipbench command that is terminated when its parent process ends, however the parent ended.

    python -m tipbench.core.die_with_parent 4711 recommend serve    # 4711 is the parent's process id

On Linux the kernel does this. On other systems, the command keeps running if its parent is killed.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_parent_command(*arguments: str) -> list[str]:
    """Return a command line that runs tipbench with these arguments and dies with this process."""
    return [sys.executable, "-m", __name__, str(os.getpid()), *arguments]


def main() -> None:
    parent_pid, *arguments = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent_pid):
        return  # the parent ended before prctl took effect
    os.execv(sys.executable, [sys.executable, "-m", "tipbench", *arguments])


if __name__ == "__main__":
    main()
