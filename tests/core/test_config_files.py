"""Files `tipbench.toml`: only those of people who may decide, only two tables, and one sentence for what is wrong."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tipbench.core.config_files import load_toml, nearest_key, read_config_file
from tipbench.core.errors import InvalidInput
from tipbench.core.untrusted import printable


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tipbench.toml"
    path.write_text("[options]\nn_tips = 3\n[settings]\nstate = 'files'\n", encoding="utf-8")
    path.chmod(0o600)
    return path


def refusal(path: Path, scope: str = "machine") -> str:
    with pytest.raises(InvalidInput) as caught:
        read_config_file(str(path), "folder" if scope == "folder" else "machine")
    message = str(caught.value)
    assert str(path) in message
    assert message == printable(message)
    return message


def test_a_file_has_options_and_settings(file: Path) -> None:
    found = read_config_file(str(file), "machine")
    assert found is not None
    assert (dict(found.options), dict(found.settings)) == ({"n_tips": 3}, {"state": "files"})
    assert not found.is_public
    file.chmod(0o644)
    assert read_config_file(str(file), "machine") == found._replace(is_public=True)


@pytest.mark.parametrize("text", ["", "[options]\n", "[settings]\n", "\ufeff[options]\n", "# nothing yet"])
def test_every_table_may_be_missing_or_empty(text: str, file: Path) -> None:
    file.write_text(text, encoding="utf-8")
    assert read_config_file(str(file), "machine")
    assert read_config_file(str(file), "folder")


def test_no_file_is_no_problem(tmp_path: Path, file: Path) -> None:
    assert read_config_file(str(tmp_path / "none.toml"), "machine") is None
    assert read_config_file(str(file / "below-a-file.toml"), "folder") is None


def test_a_folders_file_has_no_settings(file: Path) -> None:
    message = refusal(file, "folder")
    assert "sets state under [settings], which a folder's file may not" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[option]\n", "option: unknown table; did you mean options?"),
        ("n_tips = 3\n", "n_tips: unknown table; the tables are options, settings"),
        ("options = 3\n", "options: must be a table, [options] (given: 3)"),
        ("[options]\nx = \n", "line 2"),
        ("x = " + "[" * 5000, "nested too deeply"),
        ("x = " + "9" * 5000, "can't be read"),
        ("[options]\nn_tips = 1\nn_tips = 2\n", "line 3"),
        ("\x00", "can't be read"),
    ],
)
def test_what_is_no_such_file_is_said_in_one_go(text: str, says: str, file: Path) -> None:
    file.write_text(text, encoding="utf-8")
    assert says in refusal(file)


@given(st.binary(max_size=200))
def test_any_bytes_are_data_or_a_sentence(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(content)
    message = ""
    try:
        load_toml(str(path))
    except InvalidInput as error:
        message = str(error)
    assert message == printable(message)


def test_what_can_not_be_read_is_said(tmp_path: Path, file: Path) -> None:
    file.write_bytes(b"\xff")
    assert "not UTF-8" in refusal(file)
    file.write_bytes(b"#" * 1_000_001)
    assert "larger than 1 MB" in refusal(file)
    os.mkfifo(tmp_path / "pipe.toml")
    assert "not a regular file" in refusal(tmp_path / "pipe.toml")


@pytest.mark.parametrize(
    ("scope", "mode", "is_read"),
    [
        ("machine", 0o644, True),
        ("machine", 0o664, False),
        ("machine", 0o646, False),
        ("folder", 0o664, True),  # as git leaves it where groups have one member
        ("folder", 0o646, False),
    ],
)
def test_who_can_write_a_file_decides_whether_it_is_read(scope: str, mode: int, is_read: bool, file: Path) -> None:
    file.write_text("[options]\n", encoding="utf-8")
    file.chmod(mode)
    if is_read:
        assert read_config_file(str(file), "folder" if scope == "folder" else "machine")
    else:
        assert f"can be changed by other users, so it was not read; run 'chmod go-w {file}'" in refusal(file, scope)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_file_of_somebody_else_is_not_read(file: Path) -> None:
    file.write_text("[options]\n", encoding="utf-8")
    os.chown(file, 4321, 4321)
    for scope in ("machine", "folder"):
        assert "belongs to another user (id 4321)" in refusal(file, scope)
    os.chown(file.parent, 4321, 4321)  # their folder: whoever works there has chosen to
    assert read_config_file(str(file), "folder")
    assert "belongs to another user" in refusal(file)


def test_an_unknown_key_gets_the_nearest_or_all() -> None:
    assert nearest_key("n_tip", ("n_tips", "models")) == "did you mean n_tips?"
    assert nearest_key("zzz", ("n_tips", "models")) == "the keys are n_tips, models"
