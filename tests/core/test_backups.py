"""Which finished backups of a home there are."""

from pathlib import Path

from tipbench.core.backups import NAME, finished_backups, note_backup


def test_those_whose_files_are_gone_are_left_out(tmp_path: Path) -> None:
    assert finished_backups(tmp_path) == []
    for number, name in enumerate(("a", "gone", "b")):
        note_backup(tmp_path, tmp_path / name, number * 1000)
    for name in "ab":
        (tmp_path / name).touch()
    found = [(tmp_path / "a", "1970-01-01T00:00:00Z"), (tmp_path / "b", "1970-01-01T00:00:02Z")]
    assert finished_backups(tmp_path) == found
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600


def test_a_line_that_is_cut_off_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    note_backup(tmp_path, tmp_path / "a", 0)
    with (tmp_path / NAME).open("a") as list_:
        list_.write('{"path": "/b')
    (tmp_path / "c").touch()
    note_backup(tmp_path, tmp_path / "c", 0)
    assert [found.path.name for found in finished_backups(tmp_path)] == ["a", "c"]
