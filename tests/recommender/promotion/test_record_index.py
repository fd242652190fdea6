"""A list of records: what is new is read once, what has changed again, and what is gone is gone."""

import os
from pathlib import Path

from tipbench.recommender.promotion.immutable_records import RecordIndex


def test_each_is_read_once(tmp_path: Path) -> None:
    asked: list[str] = []

    def line_of(name: str) -> str:
        asked.append(name)
        return f"line of {name}"

    lines = RecordIndex(tmp_path / "records", line_of)
    assert lines.read() == []
    (tmp_path / "records").mkdir()
    first, second = "0" * 16, "f" * 16
    for name in (first, second, "notes"):
        (tmp_path / "records" / f"{name}.json").write_text("{}", encoding="utf-8")
    assert sorted(lines.read()) == sorted(lines.read()) == [f"line of {first}", f"line of {second}"]
    assert sorted(asked) == [first, second]
    os.utime(tmp_path / "records" / f"{first}.json", ns=(1, 1))
    lines.read()
    assert asked.count(first) == 2
    (tmp_path / "records" / f"{first}.json").unlink()
    assert lines.read() == [f"line of {second}"]
