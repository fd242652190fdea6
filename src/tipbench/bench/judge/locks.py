"""One at a time: two that apply scores to one experiment at once do it one after the other."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tipbench.core.locks import exclusive
from tipbench.core.paths import lock_path
from tipbench.core.settings import Settings


@contextmanager
def exclusive_judging(address: str, experiment: str, settings: Settings, say: Callable[[str], None]) -> Iterator[None]:
    path = lock_path(settings.home, "judge", address, experiment)
    with exclusive(path, f"another process is writing scores into '{experiment}'", wait=True, notify=say):
        yield
