"""Control of models in memory: one collection per endpoint at a time, and memory figures sampled while it runs."""

import json
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

import psutil

from tipbench.bench.engines.interface import IN_PROCESS, Engine
from tipbench.core.errors import EngineError, LockTaken
from tipbench.core.locks import exclusive, try_lock
from tipbench.core.paths import lock_path

_EVERY_S = 0.25
_UNLOAD_POLLS = 13  # 3 s, because the server first answers pending requests of a dead client
_SWAP_EVERY_S = 0.05
_RUSAGE_UNIT = 1 if sys.platform == "darwin" else 1024


@contextmanager
def exclusive_use(
    engine: Engine, models: Sequence[str], home: Path, wait: bool, notify: Callable[[str], None]
) -> Iterator[None]:
    """Keep other collections off this endpoint; first unload models that an earlier collection may have left loaded."""
    if not engine.exclusive:
        yield
        return
    path = lock_path(home, "engine", engine.address)
    where = "the embedded engine" if _is_in_process(engine) else engine.address
    with exclusive(path, f"another collection is using {where}", wait, notify) as lock:
        _unload_leftovers(engine, lock, notify)
        _write(lock, list(models))
        yield
        _write(lock, [])  # not after an error: the next collection checks whether the model is still loaded


def leftover_models(engine: Engine, home: Path) -> list[str]:
    """Return the models that an interrupted collection may have left at this endpoint; none while one is using it."""
    path = lock_path(home, "engine", engine.address)
    if not engine.exclusive or _is_in_process(engine) or not path.exists():
        return []
    with path.open("r+", encoding="utf-8") as lock:
        return _read_leftovers(lock) if try_lock(lock) else []


def unload_leftover_models(engine: Engine, home: Path, notify: Callable[[str], None]) -> None:
    """Unload models that an interrupted collection left at this endpoint. Raises EngineError if that fails.

    If another collection is using the endpoint, there is nothing to do: it unloaded them when it began.
    """
    path = lock_path(home, "engine", engine.address)
    if not engine.exclusive or not path.exists() or not path.stat().st_size:
        return
    with suppress(LockTaken), exclusive(path, f"another collection is using {engine.address}", False, notify) as lock:
        _unload_leftovers(engine, lock, notify)
        _write(lock, [])


def _unload_leftovers(engine: Engine, lock: IO[str], notify: Callable[[str], None]) -> None:
    """Unload repeatedly: a pending request of the killed collection may load its model again."""
    leftovers = [] if _is_in_process(engine) else _read_leftovers(lock)
    message = ""
    for poll in range(_UNLOAD_POLLS if leftovers else 0):
        if poll:
            time.sleep(_EVERY_S)
        if engine.resident():
            if not message:
                models = ", ".join(leftovers)
                message = f"{models} may still be loaded on {engine.address} by an interrupted collection"
                notify(f"{message}; unloading.")
            for model in leftovers:
                engine.unload(model)


def _is_in_process(engine: Engine) -> bool:
    """Whether models run in our process, so that they leave memory when it ends."""
    return engine.address == IN_PROCESS


def _read_leftovers(lock: IO[str]) -> list[str]:
    lock.seek(0)
    content = lock.read()
    try:
        found = json.loads(content) if content else []
    except ValueError:  # killed while writing the list: nothing was loaded yet
        return []
    return [str(model) for model in found]


def _write(lock: IO[str], models: list[str]) -> None:
    lock.seek(0)
    lock.truncate()
    lock.write(json.dumps(models) if models else "")
    lock.flush()


class Peaks(NamedTuple):
    """The most that an engine held in memory."""

    models: int = 0
    bytes: int = 0
    vram: int = 0


class MemoryWatch:
    """Samples in a background thread what an engine holds in memory; reports the peaks since the last cell began."""

    def __init__(self, every_s: float = _EVERY_S) -> None:
        self._every_s = every_s
        self._engine: Engine | None = None
        self._peaks = Peaks()  # replaced as a whole, so that reading them takes no lock
        self._swap_reading = (time.monotonic(), psutil.swap_memory().sin)
        self._swapped_in_before = self._swap_reading[1]
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
        """Begin a cell on this engine: reset the peaks."""
        with self._lock:
            self._engine, self._peaks = engine, Peaks()

    def figures(self) -> dict[str, float]:
        """Return the engine's peaks since the cell began, our own peak ever, and swapping since the watch began."""
        self._sample()
        peaks = self._peaks
        return {
            "ram/resident_models_peak": peaks.models,
            "ram/resident_bytes_peak": peaks.bytes,
            "ram/resident_vram_bytes_peak": peaks.vram,
            "ram/own_bytes_peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RUSAGE_UNIT,
            "ram/swapped_in_bytes": self._swapped_in() - self._swapped_in_before,
        }

    def _swapped_in(self) -> int:
        """Return the bytes swapped in; the reading is cached briefly, because it would dominate very short cells."""
        now = time.monotonic()
        if now - self._swap_reading[0] > _SWAP_EVERY_S:
            self._swap_reading = (now, self._swap_reading[1])  # other threads go on with the last one meanwhile
            self._swap_reading = (now, psutil.swap_memory().sin)
        return self._swap_reading[1]

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            self._sample()

    def _sample(self) -> None:
        engine = self._engine
        if engine is None:
            return
        try:
            models = engine.resident()
        except EngineError:  # unreachable or busy; the cell itself will report it
            return
        if not models:
            return
        with self._lock:
            if engine is self._engine:
                self._peaks = Peaks(
                    max(self._peaks.models, len(models)),
                    max(self._peaks.bytes, sum(model.size_bytes for model in models)),
                    max(self._peaks.vram, sum(model.vram_bytes for model in models)),
                )
