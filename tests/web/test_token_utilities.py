"""What the server keeps for itself can be read by nobody else."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tipbench.core.errors import InvalidInput
from tipbench.core.files import private_folder
from tipbench.web.tokens import server_secret


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
    assert _mode(private_folder(home / "server")) == 0o700
    assert _mode(home / "server" / "secret") == 0o600


def test_all_who_start_at_once_have_one_secret(home: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: server_secret(home), range(32)))) == 1
    assert [path.name for path in (home / "server").iterdir()] == ["secret"]


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 64, b"g" * 64])
def test_a_damaged_secret_is_not_used(home: Path, content: bytes) -> None:
    (private_folder(home / "server") / "secret").write_bytes(content)
    with pytest.raises(InvalidInput, match="secret is not a secret made by tipbench; remove it"):
        server_secret(home)
