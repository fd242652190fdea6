"""What may be in memory, and proof of what was: one collection an endpoint, and figures sampled while it runs."""

import json
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import psutil

from tipbench.bench.engines.interface import IN_PROCESS, Engine
from tipbench.core.errors import EngineError, LockTaken
from tipbench.core.locks import exclusive
from tipbench.core.paths import lock_path

_EVERY_S = 0.25
_LOOKS = 13  # 3 s: what a dead client had asked for is answered first
_SWAP_EVERY_S = 0.05
_RUSAGE_UNIT = 1 if sys.platform == "darwin" else 1024


@contextmanager
def exclusive_use(
    engine: Engine, models: Sequence[str], home: Path, wait: bool, say: Callable[[str], None]
) -> Iterator[None]:
    """Nobody else of ours uses this endpoint meanwhile. What one before may have left loaded is unloaded first."""
    if not engine.exclusive:
        yield
        return
    path = lock_path(home, "engine", engine.address)
    where = "the embedded engine" if _ends_with_us(engine) else engine.address
    with exclusive(path, f"another collection is using {where}", wait, say) as lock:
        _unload_left(engine, lock, say)
        _write(lock, list(models))
        yield
        _write(lock, [])  # not after an error: whether the model has left is for the next one to see


def unload_left(engine: Engine, home: Path, say: Callable[[str], None]) -> None:
    """Unloads what a collection that was cut short left at this endpoint. Raises EngineError when that fails.

    Where another collection uses the endpoint, nothing is left to do: it began with this.
    """
    path = lock_path(home, "engine", engine.address)
    if not engine.exclusive or not path.exists() or not path.stat().st_size:
        return
    with suppress(LockTaken), exclusive(path, f"another collection is using {engine.address}", False, say) as lock:
        _unload_left(engine, lock, say)
        _write(lock, [])


def _unload_left(engine: Engine, lock: IO[str], say: Callable[[str], None]) -> None:
    """More than once: what the collection had asked for when it was killed may load its model again."""
    left = [] if _ends_with_us(engine) else _left_loaded(lock)
    told = ""
    for snapshot in range(_LOOKS if left else 0):
        if snapshot:
            time.sleep(_EVERY_S)
        if engine.resident():
            if not told:
                told = f"{', '.join(left)} may still be loaded at {engine.address} by a collection that was cut short"
                say(f"{told}; unloading.")
            for model in left:
                engine.unload(model)


def _ends_with_us(engine: Engine) -> bool:
    """Whether models leave memory with the process that loaded them."""
    return engine.address == IN_PROCESS


def _left_loaded(lock: IO[str]) -> list[str]:
    lock.seek(0)
    content = lock.read()
    try:
        found = json.loads(content) if content else []
    except ValueError:  # killed while writing it down: nothing was loaded yet
        return []
    return [str(model) for model in found]


def _write(lock: IO[str], models: list[str]) -> None:
    lock.seek(0)
    lock.truncate()
    lock.write(json.dumps(models) if models else "")
    lock.flush()


class MemoryWatch:
    """Samples, in a thread of its own, what an engine holds; tells the peaks since the last cell began."""

    def __init__(self, every_s: float = _EVERY_S) -> None:
        self._every_s = every_s
        self._engine: Engine | None = None
        self._models = 0
        self._bytes = 0
        self._vram = 0
        self._swap_read = (time.monotonic(), psutil.swap_memory().sin)
        self._swapped_in_before = self._swap_read[1]
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memory watch", daemon=True)

    def __enter__(self) -> "MemoryWatch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def begin(self, engine: Engine) -> None:
        """A cell begins on this engine."""
        with self._lock:
            self._engine, self._models, self._bytes, self._vram = engine, 0, 0, 0

    def figures(self) -> dict[str, float]:
        """Peaks since the cell began; our own peak and the machine's swapping since this process and watch began."""
        self._sample()
        with self._lock:
            return {
                "ram/resident_models_peak": self._models,
                "ram/resident_bytes_peak": self._bytes,
                "ram/resident_vram_bytes_peak": self._vram,
                "ram/own_bytes_peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RUSAGE_UNIT,
                "ram/swapped_in_bytes": self._swapped_in() - self._swapped_in_before,
            }

    def _swapped_in(self) -> int:
        """Read anew when the last reading is old: cells that take no time would spend it here."""
        now = time.monotonic()
        if now - self._swap_read[0] > _SWAP_EVERY_S:
            self._swap_read = (now, psutil.swap_memory().sin)
        return self._swap_read[1]

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            self._sample()

    def _sample(self) -> None:
        engine = self._engine
        if engine is None:
            return
        try:
            held = engine.resident()
        except EngineError:  # the engine is away or busy; the cell itself will tell
            return
        with self._lock:
            if engine is self._engine:
                self._models = max(self._models, len(held))
                self._bytes = max(self._bytes, sum(model.size_bytes for model in held))
                self._vram = max(self._vram, sum(model.vram_bytes for model in held))
