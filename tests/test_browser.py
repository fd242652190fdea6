"""Which browser the tests take, and what is said where there is none."""

from pathlib import Path

import pytest

from tests.browser import SETTING, BrowserUnavailable, find_browser


def program(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(SETTING, raising=False)


def test_the_one_that_is_named_goes_before_those_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed, named = program(tmp_path / "bin" / "chromium"), program(tmp_path / "mine" / "chrome")
    assert find_browser() == (installed, {})
    monkeypatch.setenv(SETTING, str(named))
    assert find_browser() == (named, {})


def test_one_that_can_not_be_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, str(tmp_path / "none"))
    with pytest.raises(BrowserUnavailable, match=rf"{SETTING} names '.*none', which can't be run"):
        find_browser()


def test_without_npm_it_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(BrowserUnavailable, match="sudo apt-get install npm"):
        find_browser()
    assert {path.name for path in (tmp_path / "cache" / "tipbench-test-browser").iterdir()} == {"lock"}


def test_a_package_of_another_digest_is_not_used(tmp_path: Path) -> None:
    npm = program(tmp_path / "bin" / "npm")
    npm.write_text('#!/bin/sh\necho forged > "$4/chromium.tgz"\n')
    program(tmp_path / "bin" / "node")
    with pytest.raises(BrowserUnavailable, match="is not what it should be"):
        find_browser()
    assert {path.name for path in (tmp_path / "cache" / "tipbench-test-browser").iterdir()} == {"lock"}
