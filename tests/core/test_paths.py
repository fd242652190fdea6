"""Nobody else may read the home."""

import os
from pathlib import Path

import pytest

from tipbench.core.files import make_private_folder
from tipbench.core.paths import restrict_home


def lax(path: Path) -> None:
    for folder, _, names in os.walk(path):
        Path(folder).chmod(0o755)
        for name in names:
            Path(folder, name).chmod(0o644)


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """A home as an earlier version made it."""
    home = tmp_path / "home"
    for name in ("mlflow.db", "mlflow.db-wal", ".mlflow.db.lock", "server/secret", "weights/tool", "cache/looks/x"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("x")
    (home / "cache" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "outside").write_text("somebody else's")
    lax(tmp_path)
    (home / "weights" / "tool").chmod(0o755)
    return home


def modes(folder: Path) -> dict[str, int]:
    found = [folder, *(path for path in folder.rglob("*") if not path.is_symlink())]
    return {str(path.relative_to(folder.parent)): path.stat().st_mode & 0o777 for path in found}


def test_what_an_earlier_version_made_is_tightened_with_a_word(earlier: Path) -> None:
    assert restrict_home(earlier) == f"Other users of this machine could read {earlier}; now only you can."
    assert {mode & 0o077 for mode in modes(earlier).values()} == {0}
    assert modes(earlier)["home/weights/tool"] == 0o700
    assert (earlier.parent / "outside").stat().st_mode & 0o777 == 0o644
    assert restrict_home(earlier) == ""


def test_what_goes_away_meanwhile_stops_nobody(earlier: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chmod = Path.chmod

    def sometimes(path: Path, mode: int) -> None:
        if path.name == "secret":
            raise FileNotFoundError(path)
        chmod(path, mode)

    monkeypatch.setattr(Path, "chmod", sometimes)
    assert "now only you can" in restrict_home(earlier)
    assert modes(earlier)["home/weights/tool"] == 0o700


def test_a_home_with_something_else_in_it_is_warned_of_and_left(earlier: Path) -> None:
    (earlier / "thesis.tex").write_text("mine")
    before = modes(earlier)
    told = restrict_home(earlier)
    assert "That was not changed, because it holds 'thesis.tex', which tipbench did not make" in told
    assert f"'chmod -R go= {earlier}'" in told
    assert modes(earlier) == before


def test_no_home_and_a_private_one_are_no_news(tmp_path: Path) -> None:
    assert restrict_home(tmp_path / "none") == ""
    (tmp_path / "file").write_text("x")
    assert restrict_home(tmp_path / "file") == ""
    make_private_folder(tmp_path / "home")
    assert restrict_home(tmp_path / "home") == ""
