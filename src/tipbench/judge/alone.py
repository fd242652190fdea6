"""One at a time: two that apply scores to one experiment at once do it one after the other."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tipbench.settings import Settings
from tipbench.turns import lock_path, turn


@contextmanager
def judging_alone(address: str, experiment: str, settings: Settings, say: Callable[[str], None]) -> Iterator[None]:
    path = lock_path(settings.home, "judge", address, experiment)
    with turn(path, f"another process is writing scores into '{experiment}'", wait=True, say=say):
        yield
