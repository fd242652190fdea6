"""A file's name is harmless whatever it is called after."""

import pytest

from tipbench.server.ui.static_files import attachment


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("tip-bench-1", "tip-bench-1.csv"),
        ("a/b\\c", "a-b-c.csv"),
        ("../..", "tipbench.csv"),
        ('x"; filename="evil.exe', "x-filename-evil.exe.csv"),
        ("line\r\nSet-Cookie: a=b", "line-Set-Cookie-a-b.csv"),
        ("ü", "tipbench.csv"),
        ("x" * 500, f"{'x' * 80}.csv"),
    ],
)
def test_names(name: str, file: str) -> None:
    assert attachment(name, "csv") == {"Content-Disposition": f'attachment; filename="{file}"'}
