"""`tipbench config`: which options and settings are in force on this machine, and where each comes from."""

import os
import re
from typing import Any

import click
from rich.table import Table

from tipbench.bench.defaults import sourced_defaults
from tipbench.cli.console import out
from tipbench.core.config_files import NAME
from tipbench.core.settings import TABLE, Setting, Settings
from tipbench.core.untrusted import json_text, printable, without_credentials


@click.group(epilog="Examples:\n\n\b\n  tipbench config show\n  tipbench config show --format json")
def command() -> None:
    """Show which options and settings are in force here, and where each comes from."""


@command.command("show", epilog="Example:\n\n\b\n  tipbench config show --format json")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", help="[default: table]")
def show(form: str) -> int:
    """Show every option and setting with its value and source: a file, a variable of the environment, or the default.

    Lowest first: the system's file, the user's, that of this folder (options only), the environment; then --config and
    flags, which are not shown here. Secrets are not shown either, only that they are set.
    """
    settings = Settings()
    files = _files(settings)
    options = [
        {"key": key, "value": _shown(default.value), "source": default.source}
        for key, default in sourced_defaults(settings).items()
    ]
    rows = [_setting(settings, setting) for setting in TABLE]
    if form == "json":
        click.echo(json_text({"files": files, "options": options, "settings": rows}))
        return 0
    read = [str(file["path"]) for file in files if file["read"]]
    out.print(f"Files read: {', '.join(read) or 'none'}", soft_wrap=True)
    if missing := [str(file["path"]) for file in files if not file["read"]]:
        out.print(f"Not there: {', '.join(missing)}", soft_wrap=True)
    _print("Options", "key", options)
    _print("Settings", "name", rows)
    return 0


def _files(settings: Settings) -> list[dict[str, Any]]:
    """Return the files in the order in which they are read: a later one goes before an earlier one."""
    read = {file.path for file in (*settings.files, settings.folder_file) if file}
    return [{"path": path, "read": path in read} for path in (*settings.file_paths, f".{os.sep}{NAME}")]


def _setting(settings: Settings, setting: Setting) -> dict[str, Any]:
    source = settings.source(setting.name)
    is_set = settings.is_set(setting.name)
    return {
        "name": setting.name,
        "value": None if setting.secret else _shown(settings.get(setting.name)),
        "source": f"environment {setting.name}" if source == "environment" else source,
        "secret": setting.secret,
        "is_set": is_set,
    }


def _shown(value: Any) -> Any:
    """Return a value without what may be secret in an address: user name and password, and the query."""
    if not isinstance(value, str):
        return value
    if re.match(r"\w+://", value):
        return re.sub(r"\?.*", "?…", without_credentials(value), flags=re.DOTALL)
    return re.sub(r"://\S*@", "://", value)


def _print(title: str, first: str, rows: list[dict[str, Any]]) -> None:
    table = Table(title=title, title_justify="left")
    for column in (first, "value", "from"):
        table.add_column(column, overflow="fold")
    for row in rows:
        is_hidden = row.get("secret") and row["is_set"]
        value = "set, not shown" if is_hidden else "" if row["value"] is None else printable(str(row["value"]))
        table.add_row(row[first], value, printable(row["source"]))
    out.print(table)
