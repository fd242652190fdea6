"""What the disk alone costs: a small file replaced as a whole, synced with its folder, by nothing but system calls."""

import os
import time
from pathlib import Path


def synced_writes_s(folder: Path, times: int, size: int = 4096) -> list[float]:
    content = os.urandom(size)
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    seconds = []
    for number in range(times):
        started = time.perf_counter()
        file = os.open(folder / "new", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        os.write(file, content)
        os.fsync(file)
        os.close(file)
        (folder / "new").replace(folder / f"file-{number % 10}")
        os.fsync(directory)
        seconds.append(time.perf_counter() - started)
    os.close(directory)
    return seconds
