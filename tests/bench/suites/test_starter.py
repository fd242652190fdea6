"""What `suite new` writes works at once, and nothing is ever overwritten."""

from pathlib import Path

import pytest

from tipbench.bench.suites.load import load_suite, write_starter
from tipbench.core.errors import InvalidInput


@pytest.mark.parametrize("name", ["blurbs", "a", "2-lines"])
def test_the_starter_is_a_suite_under_the_name_given(tmp_path: Path, name: str) -> None:
    suite = load_suite(str(write_starter(tmp_path / name)))
    assert suite.name == name
    assert suite.rubric.name == f"{name}-v1"
    assert suite.experiment_prefix == f"{name}-bench-"
    assert len(suite.scenarios) >= 2
    assert len(suite.prompts) >= 2


def test_a_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "blurbs").mkdir()
    with pytest.raises(InvalidInput, match="exists"):
        write_starter(tmp_path / "blurbs")
    assert list((tmp_path / "blurbs").iterdir()) == []


@pytest.mark.parametrize("name", ["Blurbs", "my suite", "-x", "x" * 42, "é"])
def test_a_name_that_can_not_be_used_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="can't be the name of a suite"):
        write_starter(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_the_folder_around_it_must_exist(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no folder"):
        write_starter(tmp_path / "missing" / "blurbs")
