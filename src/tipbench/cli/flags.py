"""Flags generated from the fields of `Options`, so that no parameter list is written twice."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from tipbench.bench.defaults import machine_defaults
from tipbench.bench.options import Options, make_options, option_fields, read_config
from tipbench.core.settings import Settings

_Command = TypeVar("_Command", bound=Callable[..., Any])


def option_flags(*keys: str, **defaults: str) -> Callable[[_Command], _Command]:
    """Add the flags of these keys, or of all options without any; a flag that is not given is passed as None.

    `defaults` are those of a command that has others than a run.
    """

    def decorate(command: _Command) -> _Command:
        for field in reversed(list(option_fields())):
            if keys and field.key not in keys:
                continue
            flag = f"{field.flag}/--no-{field.flag.removeprefix('--')}" if field.type is bool else field.flag
            value = defaults.get(field.key, field.default)
            default = "" if value in (None, False) else f"  [default: {value}]"
            command = click.option(
                flag,
                field.key,
                type=field.type,
                default=None,
                metavar=_metavar(field.type),
                help=field.help + default,
            )(command)
        return command

    return decorate


def config_flag(command: _Command) -> _Command:
    return click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        help="YAML or JSON file with the same keys as the flags (n_tips: 3); flags override it.",
    )(command)


def progress_flag(command: _Command) -> _Command:
    return click.option(
        "--progress",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Write the progress, and in the end the result, to this JSON file.",
    )(command)


def log_flag(command: _Command) -> _Command:
    return click.option(
        "--log",
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        help="Folder of the decision log.  [default: that of this machine's service]",
    )(command)


def retry_flag(command: _Command) -> _Command:
    return click.option("--retry-failed", is_flag=True, help="Retry the cells that failed before.")(command)


def fresh_flag(command: _Command) -> _Command:
    return click.option(
        "--fresh", is_flag=True, help="Start over: stored cells of this grid stay in MLflow, but no longer count."
    )(command)


def wait_flag(command: _Command) -> _Command:
    return click.option(
        "--no-wait", is_flag=True, help="Refuse instead of waiting while another collection uses the same Ollama."
    )(command)


def gather(given: dict[str, Any], config: Path | None = None, **own: Any) -> Options:
    """Make options from defaults, overridden by the files `tipbench.toml`, by addresses in the environment, by the
    config file, and by flags.

    `given` has a key for each of the command's options, and only those are taken from the machine's defaults; `own`
    are options by which the command means something of its own.
    """
    flags = {key: value for key, value in {**given, **own}.items() if value is not None}
    named = read_config(config) if config else {}
    source = f"config file {config}, with the flags," if config else "the flags"
    make_options({**named, **flags}, source)  # so that a problem is reported with its own source
    settings = Settings()
    defaults = machine_defaults(settings, given.keys() - named.keys() - flags.keys())
    _note_folder_file(settings, defaults)
    return make_options({**defaults, **named, **flags}, source)


def _note_folder_file(settings: Settings, defaults: Mapping[str, Any]) -> None:
    """Say what the folder's file sets: it may have come with somebody else's files."""
    file = settings.folder_file
    taken = sorted(defaults.keys() & file.options.keys()) if file else []
    if file and taken:
        click.echo(f"Options by {file.path}: {', '.join(taken)}.", err=True)


def _metavar(kind: type) -> str | None:
    return {int: "N", float: "X", str: "TEXT"}.get(kind)
