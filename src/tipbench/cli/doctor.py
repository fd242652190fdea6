"""`tipbench doctor`: what is reachable, which models fit, what to install."""

import importlib.util
import os
import platform
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import click
import psutil

from tipbench.bench.engines.admission import footprint, memory_refusal
from tipbench.bench.engines.catalog import EngineModels, open_engines
from tipbench.bench.engines.weights import KNOWN, weights_path
from tipbench.bench.options import Options
from tipbench.bench.records import ModelInfo
from tipbench.bench.tracking.address import open_store
from tipbench.cli.console import out
from tipbench.cli.flags import gather, option_flags
from tipbench.core.errors import NothingStored, TipbenchError
from tipbench.core.paths import weights_folder
from tipbench.core.settings import Settings
from tipbench.core.untrusted import printable
from tipbench.maintenance.repair import Repair


@click.command(
    epilog="Examples:\n\n\b\n  tipbench doctor --ollama-url http://gpu-box:11434\n  tipbench doctor --repair"
)
@option_flags("ollama_url", "mlflow_url", "max_model_b")
@click.option("--repair", is_flag=True, help="Also clean up after killed processes; nothing that is in use is touched.")
def command(repair: bool, **given: Any) -> int:
    """Check what is reachable, which models are installed and fit into memory, and what to install.

    It also says what killed processes left behind: cells that are not delivered, files and folders that belong to
    nothing, models in memory. With --repair, that is delivered or removed.

    Exit status: 0 when at least one model can be used and results can be stored, else 1.
    """
    options = gather(given)
    settings = Settings()
    memory = psutil.virtual_memory()
    _line(True, "system", f"{platform.system()} {platform.machine()}, Python {platform.python_version()}")
    _line(True, "memory", f"{memory.available / 2**30:.1f} of {memory.total / 2**30:.1f} GiB free")
    stored = _check_store(options, settings)
    usable = []
    with open_engines(options, settings) as engines:
        for found in engines.offered():
            _show_engine(found)
            usable += [one.name for one in found.models if _show_model(one, options.max_model_b, memory.available)]
    _show_weights(settings)
    _show_leftovers(options, settings, repair)
    if usable and stored:
        out.print(f"All set, for example: tipbench collect --models {usable[0]} --experiment tip-bench-first")
        return 0
    out.print("Not ready: " + ("no model can be used." if not usable else "results can't be stored."))
    return 1


def _show_leftovers(options: Options, settings: Settings, mend: bool) -> None:
    repair = Repair(settings, time.time, mend)
    found = list(repair.in_home())
    with suppress(TipbenchError), closing(open_store(options.mlflow_url, settings).store) as store:  # reported above
        found += repair.writers(store)
    with open_engines(options, settings) as engines:
        found += repair.models(engines)
    for one in found:
        _line(one.mended, "leftover", f"{one.what} – {one.outcome}" if one.outcome else one.what)
    if found and not mend:
        _line(None, "", "'tipbench doctor --repair' takes care of that")


def _show_engine(found: EngineModels) -> None:
    advice = "" if found.models else f"; {found.advice}"
    _line(bool(found.models), found.engine, found.problem or f"{found.address}: {len(found.models)} models{advice}")


def _show_weights(settings: Settings) -> None:
    """List models that could be pulled besides those that are installed."""
    folder = weights_folder(settings.home)
    missing = [known for known in KNOWN if not weights_path(folder, known).is_file()]
    if missing and len(missing) < len(KNOWN):
        _line(None, "weights", f"more can be installed: {', '.join(f'tipbench pull {known}' for known in missing)}")


def _show_model(model: ModelInfo, limit: float, free: int) -> bool:
    size = "size unknown" if model.billions is None else f"{model.billions:.3g} B parameters"
    weight = f", {model.size_bytes / 2**30:.2f} GiB" if model.size_bytes else ""
    problem = ""
    if limit and model.billions is None:
        problem = "of unknown size: needs --max-model-b 0"
    elif limit and model.billions is not None and model.billions > limit:
        problem = f"over --max-model-b {limit:g}"
    elif memory_refusal(model, free):
        problem = f"needs about {footprint(model)}, which is more than is free"
    _line(not problem, "", f"{model.name}: {size}{weight}" + (f": {problem}" if problem else ""))
    return not problem


def _check_store(options: Options, settings: Settings) -> bool:
    if importlib.util.find_spec("mlflow") is None:
        _line(
            None,
            "mlflow",
            "not installed: results can go to a server, but not to a file without: pip install 'tipbench[mlflow]'",
        )
    try:
        opened = open_store(options.mlflow_url, settings)
        count = len(opened.store.experiments(""))
        opened.store.close()
    except NothingStored as nothing:
        writable = _is_writable(settings.home)
        _line(writable, "results", str(nothing) if writable else f"the folder {settings.home} can't be written")
        return writable
    except TipbenchError as error:
        _line(False, "results", str(error))
        return False
    _line(True, "results", f"{opened.store.address}: {count} experiments")
    return True


def _is_writable(folder: Path) -> bool:
    """Return whether the folder, or its nearest existing parent, is writable."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return os.access(folder, os.W_OK)


def _line(good: bool | None, what: str, text: str) -> None:
    mark, style = {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "dim")}[good]
    out.print(f"{mark} ", style=style, end="")
    out.print(f"{what:<9} {printable(text)}", soft_wrap=True)
