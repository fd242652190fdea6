"""What people name as a file is read, if it is one."""

import os
import re
import threading
from pathlib import Path

import pytest

from tests.integration.command import tipbench
from tipbench.regular_files import read_regular, read_start

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(9)
)


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"y" * 3_000_000)
    assert read_regular(tmp_path / "x") == b"y" * 3_000_000
    assert read_start(tmp_path / "x") == b"y" * 300
    assert read_regular(tmp_path / "x", 3_000_000) == b"y" * 3_000_000


def test_what_is_no_file_or_too_large_is_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"y" * 1_001)
    for path, why in (
        (tmp_path / "pipe", "it is not a regular file"),
        (Path("/dev/zero"), "it is not a regular file"),
        (tmp_path, "it is not a regular file"),
        (tmp_path / "large", "it is larger than 0.001 MB"),
        (tmp_path / "none", "No such file or directory"),
    ):
        with pytest.raises(OSError, match=re.escape(why)):
            read_regular(path, 1_000)


@pytest.mark.parametrize("kind", ["pipe", "device", "aliases"])
def test_every_command_that_takes_a_file_tells_it_at_once(kind: str, tmp_path: Path) -> None:
    assert tipbench("suite", "new", "own", cwd=tmp_path).status == 0
    (tmp_path / "bomb.yaml").write_text(BOMB)
    os.mkfifo(tmp_path / "pipe.yaml")
    named = {"pipe": tmp_path / "pipe.yaml", "device": Path("/dev/zero"), "aliases": tmp_path / "bomb.yaml"}[kind]
    (tmp_path / "own" / "scenarios.yaml").unlink()
    (tmp_path / "own" / "scenarios.yaml").symlink_to(named)
    (tmp_path / "script.yaml").symlink_to(named)
    commands = [
        ("suite", "check", str(tmp_path / "own")),
        ("collect", "--config", str(named)),
        ("collect", "--models", f"scripted/{tmp_path / 'script.yaml'}"),
        ("judge", "--experiment", "tip-bench-x", "--apply", str(named)),
        ("sim", "run", "--world", str(named)),
    ]
    for command in commands:
        found: list[int] = []
        thread = threading.Thread(target=_run, args=(command, found), daemon=True)
        thread.start()
        thread.join(20)
        assert found == [2], command


def _run(command: tuple[str, ...], found: list[int]) -> None:
    found.append(tipbench(*command).status)
