"""Flags come from the configuration table, and go before the config file, which goes before the defaults."""

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tipbench.bench.options import Options, option_fields
from tipbench.cli.flags import config_flag, gather, option_flags
from tipbench.cli.main import run
from tipbench.core.errors import Problems


def flags(*keys: str) -> dict[str, click.Option]:
    @click.command()
    @option_flags(*keys)
    def command(**given: Any) -> None: ...

    return {parameter.name or "": parameter for parameter in command.params if isinstance(parameter, click.Option)}


def seen(arguments: list[str]) -> Options:
    """The options that a command sees for these arguments."""
    result: list[Options] = []

    @click.command()
    @option_flags()
    @config_flag
    def command(config: Path | None, **given: Any) -> None:
        result.append(gather(given, config))

    CliRunner().invoke(command, arguments, catch_exceptions=False, standalone_mode=False)
    return result[0]


def test_every_key_of_the_table_has_its_flag_and_help() -> None:
    drawn = flags()
    assert list(drawn) == list(Options.model_fields)
    for field in option_fields():
        assert field.flag in drawn[field.key].opts
        assert (drawn[field.key].help or "").startswith(field.help)


def test_a_command_takes_only_the_keys_it_names() -> None:
    assert set(flags("seed", "n_tips")) == {"seed", "n_tips"}


def test_the_help_shows_the_defaults() -> None:
    assert "[default: 5]" in (flags()["n_tips"].help or "")


def test_without_flags_the_defaults_hold() -> None:
    assert seen([]) == Options()


def test_flags_go_before_the_config_file_and_that_before_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "bench.yaml"
    path.write_text("n_tips: 3\nseed: 7\ndiversity: true\n", encoding="utf-8")
    options = seen(["--config", str(path), "--n-tips", "2", "--no-diversity"])
    assert (options.n_tips, options.seed, options.diversity, options.repeats) == (2, 7, False, 1)


def test_the_quick_start_is_understood_flag_for_flag() -> None:
    options = seen(
        [
            *("--models", "qwen2.5:0.5b,gemma3:1b", "--prompts", "v1,v3-few-shot"),
            *("--experiment", "tip-bench-2026-04-27", "--n-tips", "5", "--diversity"),
        ]
    )
    assert options.model_names == ("qwen2.5:0.5b", "gemma3:1b")
    assert options.prompt_names == ("v1", "v3-few-shot")
    assert options.experiment == "tip-bench-2026-04-27"
    assert options.diversity


@pytest.mark.parametrize(
    "arguments", [["--temperature", "nan"], ["--n-tips", "0"], ["--models", ","], ["--seed", "-1"]]
)
def test_a_value_out_of_range_is_refused_as_everywhere_else(arguments: list[str]) -> None:
    with pytest.raises(Problems, match="the flags can't be used"):
        seen(arguments)


def test_a_problem_in_the_config_file_names_it(tmp_path: Path) -> None:
    path = tmp_path / "bench.yaml"
    path.write_text("n_tip: 3\n", encoding="utf-8")
    with pytest.raises(Problems, match=r"bench\.yaml"):
        seen(["--config", str(path)])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_folders_file_goes_below_the_environment_the_config_file_and_flags(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "tipbench.toml").write_text(
        '[options]\nn_tips = 3\nseed = 7\nrepeats = 2\nollama_url = "http://f"\nmlflow_url = "http://f"\njudge = "f"\n'
    )
    (folder / "bench.yaml").write_text("seed: 8\nn_tips: 9\njudge: null\n", encoding="utf-8")
    monkeypatch.setenv("OLLAMA_HOST", "e")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://e")
    options = seen(["--config", "bench.yaml", "--n-tips", "4"])
    assert (options.n_tips, options.seed, options.repeats, options.judge) == (4, 8, 2, None)
    assert (options.ollama_url, options.mlflow_url) == ("http://e:11434", None)
    assert seen(["--ollama-url", "http://flag"]).ollama_url == "http://flag"


def test_only_what_the_command_has_a_flag_for_is_taken_from_the_machine(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A default suite would else be taken for the wish to judge an experiment by another suite's rubric."""
    (folder / "tipbench.toml").write_text('[options]\nsuite = "other"\nexperiment = "mine"\nseed = 7\n')
    options = gather({"experiment": None, "mlflow_url": None}, suite=None)
    assert (options.experiment, options.suite, options.seed) == ("mine", "tip", 0)
    assert "suite" not in options.model_fields_set
    assert capsys.readouterr().err == "Options by ./tipbench.toml: experiment.\n"


def test_what_no_file_sets_is_said_by_no_line(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    gather({"seed": 3})
    (folder / "tipbench.toml").write_text("[options]\nseed = 7\n")
    gather({"seed": 3})
    assert capsys.readouterr().err == ""


def test_a_folders_settings_end_a_command_with_one_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "tipbench.toml").write_text('[settings]\njudge_command = "rm -rf ~"\n')
    assert run(["collect", "--dry-run"]) == 2
    said = capsys.readouterr().err
    assert "./tipbench.toml sets judge_command under [settings], which a folder's file may not" in said
    assert said.count("\n") == 1
