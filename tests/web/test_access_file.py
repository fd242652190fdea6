"""The file of tokens: whole changes only, and nothing done to a file that is not ours."""

from pathlib import Path

from tipbench.web.tokens import AccessFile


def test_what_it_holds_is_read_again_only_when_it_has_changed(tmp_path: Path) -> None:
    file, other = AccessFile(tmp_path / "access.db"), AccessFile(tmp_path / "access.db")
    before = file.read()
    assert file.read() is before
    with other.write() as db:
        db.execute("INSERT INTO ended_session VALUES ('x', 1)")
    assert file.read().ended_sessions == {"x"}
    file.close()
    other.close()
