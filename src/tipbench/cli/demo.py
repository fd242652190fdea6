"""`tipbench demo`: all phases once, with nothing but this package."""

import click

from tipbench.bench.engines.embedded import DEFAULT_MODEL
from tipbench.bench.engines.weights import KNOWN, pull, weights_path
from tipbench.bench.options import make_options
from tipbench.bench.tracking.address import own_database_url
from tipbench.cli.console import note, out
from tipbench.cli.progress_file import ProgressFile
from tipbench.cli.run import run_all
from tipbench.core.files import make_private_folder
from tipbench.core.paths import weights_folder
from tipbench.core.settings import Settings

EXPERIMENT = "tip-bench-demo"
_WEIGHTS = KNOWN[DEFAULT_MODEL.removeprefix("embedded/")]


@click.command(epilog="Examples:\n\n\b\n  tipbench demo\n  tipbench demo --quick")
@click.option("--quick", is_flag=True, help="One scenario and short answers, in a tenth of the time.")
def command(quick: bool) -> int:
    """Try the whole path once: a real model, a leaderboard.

    An embedded model (135 million parameters, 98 MB, Apache-2.0) answers all prompts and scenarios, simple rules
    score the answers, and the results are stored in a database of tipbench's own. No server is needed.
    """
    settings = Settings()
    if not weights_path(weights_folder(settings.home), _WEIGHTS.name).is_file():
        note(f"Installing the weights of {_WEIGHTS.name} ({_WEIGHTS.megabytes} MB, {_WEIGHTS.licence}) …")
        pull(weights_folder(settings.home), _WEIGHTS)
    make_private_folder(settings.home)
    options = make_options(
        {
            "models": DEFAULT_MODEL,
            "experiment": EXPERIMENT,
            "n_tips": 3 if quick else 5,
            "n_scenarios": 1 if quick else 0,
            "max_tokens": 128 if quick else 256,
            "judge": "lexical",
            "mlflow_url": own_database_url(settings),
        }
    )
    status = run_all(options, ProgressFile(None))
    out.print(
        "\nThis was a weak model, scored by rules. What to do next:\n"
        f"  judge it yourself      tipbench judge --experiment {EXPERIMENT} --export judge.json\n"
        f"  look at the report     tipbench compare --experiment {EXPERIMENT} --format html > report.html\n"
        "  do both in a browser   tipbench serve\n"
        "  see what you have      tipbench doctor\n"
        "  bench real models      tipbench collect --models qwen2.5:0.5b,gemma3:1b --experiment tip-bench-first\n"
        "  write your own suite   tipbench suite new my-suite",
        soft_wrap=True,
    )
    return status
