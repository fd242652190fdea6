"""`tipbench suite register`, `unregister` and `list`: the suites that the server and --suite know by name."""

import click

from tipbench.bench.suites.load import built_in_suites, load_suite, register_suite
from tipbench.bench.suites.registered import registered_suites, remove_registered
from tipbench.cli.console import out
from tipbench.core.errors import InvalidInput
from tipbench.core.settings import Settings
from tipbench.core.text import counted
from tipbench.core.untrusted import printable


@click.command("register")
@click.argument("folder")
def register(folder: str) -> int:
    """Make the suite in FOLDER known by its name: to --suite, and to the admin server's forms."""
    suite, is_new = register_suite(folder, Settings())
    state = "is registered now" if is_new else "was registered already"
    out.print(f"Suite '{suite.name}' in {suite.folder} {state}.", soft_wrap=True)
    return 0


@click.command("unregister")
@click.argument("name")
def unregister(name: str) -> int:
    """Forget a registered suite; its folder stays as it is, and so do its experiments."""
    folder = remove_registered(name, Settings())
    out.print(f"Suite '{name}' is no longer registered; {folder} was left as it is.", soft_wrap=True)
    return 0


@click.command("list")
def list_() -> int:
    """List the suites that are known by name, and what is wrong with those that can't be used."""
    settings = Settings()
    for name, folder in {**built_in_suites(), **registered_suites(settings)}.items():
        try:
            suite = load_suite(name, settings)
        except InvalidInput as error:
            out.print(f"{printable(name)}  can't be used: {printable(str(error))}", soft_wrap=True)
            continue
        counts = (counted(len(suite.scenarios), "scenario"), counted(len(suite.prompts), "prompt"))
        where = "built in" if name in built_in_suites() else str(folder)
        out.print(f"{name}  {', '.join(counts)}, {counted(len(suite.anchors), 'anchor')}  {where}", soft_wrap=True)
    return 0
