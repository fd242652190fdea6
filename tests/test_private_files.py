"""What the server keeps for itself can be read by nobody else."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tipbench.errors import InvalidInput
from tipbench.private_files import make_private_folder, private_folder, server_secret, tighten_home


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_secret_is_made_once_and_is_private(home: Path) -> None:
    secret = server_secret(home)
    assert len(secret) == 32
    assert server_secret(home) == secret
    assert _mode(home / "server") == 0o700
    assert _mode(home / "server" / "secret") == 0o600


def test_loose_rights_are_tightened(home: Path) -> None:
    server_secret(home)
    (home / "server").chmod(0o755)
    (home / "server" / "secret").chmod(0o644)
    server_secret(home)
    assert _mode(private_folder(home)) == 0o700
    assert _mode(home / "server" / "secret") == 0o600


def test_all_who_start_at_once_have_one_secret(home: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: server_secret(home), range(32)))) == 1
    assert [path.name for path in (home / "server").iterdir()] == ["secret"]


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 64, b"g" * 64])
def test_a_damaged_secret_is_not_used(home: Path, content: bytes) -> None:
    (private_folder(home) / "secret").write_bytes(content)
    with pytest.raises(InvalidInput, match="secret is not a secret that tipbench made; remove it"):
        server_secret(home)


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


def test_folders_are_made_private_with_all_that_is_missing_above(tmp_path: Path) -> None:
    make_private_folder(tmp_path / "a" / "b" / "c")
    make_private_folder(tmp_path / "a" / "b" / "c")
    assert {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")} == {0o700}
    (tmp_path / "a").chmod(0o755)
    make_private_folder(tmp_path / "a" / "d")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o755


def test_what_an_earlier_version_made_is_tightened_with_a_word(earlier: Path) -> None:
    assert tighten_home(earlier) == f"Other users of this machine could read {earlier}; now only you can."
    assert {mode & 0o077 for mode in modes(earlier).values()} == {0}
    assert modes(earlier)["home/weights/tool"] == 0o700
    assert (earlier.parent / "outside").stat().st_mode & 0o777 == 0o644
    assert tighten_home(earlier) == ""


def test_what_goes_away_meanwhile_stops_nobody(earlier: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chmod = Path.chmod

    def sometimes(path: Path, mode: int) -> None:
        if path.name == "secret":
            raise FileNotFoundError(path)
        chmod(path, mode)

    monkeypatch.setattr(Path, "chmod", sometimes)
    assert "now only you can" in tighten_home(earlier)
    assert modes(earlier)["home/weights/tool"] == 0o700


def test_a_home_with_something_else_in_it_is_warned_of_and_left(earlier: Path) -> None:
    (earlier / "thesis.tex").write_text("mine")
    before = modes(earlier)
    told = tighten_home(earlier)
    assert "It was left so, because it holds 'thesis.tex', which tipbench did not make" in told
    assert f"'chmod -R go= {earlier}'" in told
    assert modes(earlier) == before


def test_no_home_and_a_private_one_are_no_news(tmp_path: Path) -> None:
    assert tighten_home(tmp_path / "none") == ""
    (tmp_path / "file").write_text("x")
    assert tighten_home(tmp_path / "file") == ""
    make_private_folder(tmp_path / "home")
    assert tighten_home(tmp_path / "home") == ""
