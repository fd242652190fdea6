"""The folder of a job: private, and its log safe to show."""

from pathlib import Path

import pytest

from tipbench.bench.options import make_options, read_config
from tipbench.server.jobs.job_folder import JobFolder


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    made = JobFolder(tmp_path / "j")
    made.create(make_options({"temperature": 1e-05, "experiment": 'ä \\ "x"', "max_model_b": 1e16}).model_dump())
    return made


def test_it_is_for_nobody_elses_eyes(folder: JobFolder) -> None:
    assert folder.path.stat().st_mode & 0o777 == 0o700
    assert folder.config.stat().st_mode & 0o777 == 0o600


def test_the_run_reads_what_was_asked_for(folder: JobFolder) -> None:
    read = make_options(read_config(folder.config))
    assert (read.temperature, read.experiment, read.max_model_b) == (1e-05, 'ä \\ "x"', 1e16)


def test_the_command_is_what_one_would_type(folder: JobFolder) -> None:
    words = folder.command(None, retry_failed=True, fresh=True)
    assert words[3:5] == ["tipbench", "run"]
    assert words[-4:] == ["--export", str(folder.path / "judge.json"), "--retry-failed", "--fresh"]
    assert not {"--export", "--retry-failed", "--fresh"} & set(folder.command("lexical", False, False))


def test_a_judge_that_is_a_model_runs_where_the_server_said(folder: JobFolder) -> None:
    config = {"experiment": "e", "mlflow_url": "m", "judge": "model"}
    words = folder.judge_command({**config, "ollama_url": "http://gpu:1"})
    assert words[words.index("--ollama-url") + 1] == "http://gpu:1"
    assert "--ollama-url" not in folder.judge_command(config), "an earlier version queued it"


def test_the_log_is_printable_and_begins_with_a_whole_line(folder: JobFolder) -> None:
    assert folder.log_end(100) == ""
    folder.log.write_bytes(b"first line\nsecond \x1b[31mred\xff\r\nthird\n")
    assert folder.log_end(1000) == "first line\nsecond \\u001b[31mred\ufffd\\u000d\nthird\n"
    assert folder.log_end(20) == "third\n"
    (folder.path / "log.1.txt").write_bytes(b"older\nold\n")
    assert folder.log_end(1000).startswith("older\nold\nfirst")
    assert folder.log_end(41).startswith("old\nfirst")


def test_a_line_without_an_end_is_shown_from_its_middle(folder: JobFolder) -> None:
    folder.log.write_bytes("ö".encode() * 5000)
    assert folder.log_end(101) == "\ufffd" + "ö" * 50


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"status": "x", "ended_ms": 3}', '{"status": 3}'])
def test_an_end_that_was_not_written_whole_is_none(folder: JobFolder, content: str) -> None:
    (folder.path / "exit.json").write_text(content)
    (folder.path / "pids.json").write_text(content)
    assert folder.exit() is None
    assert folder.pids() == (None, None)


def test_removing_it_twice_is_harmless(folder: JobFolder) -> None:
    folder.remove()
    folder.remove()
    assert not folder.path.exists()
