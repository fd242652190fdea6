"""`tipbench collect --unload call` against `--unload model` on a real Ollama with three small models.

    .venv/bin/python -m benchmarks.unload            # some minutes; the first time it installs the server: 0.5 GB
    .venv/bin/python -m benchmarks.unload --rounds 5

Command start to exit, 3 models × 1 prompt × 4 scenarios, short answers. Either way there must never be two models in
the server's memory; what `--unload model` saves is loading them again for every cell.
"""

import argparse
import sys
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.integration.real_ollama.server import MODELS, OllamaServer, default_cache, unsupported_reason

from benchmarks.parts.collecting import collect
from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.stored import opened
from benchmarks.parts.table import out, show
from tipbench.bench.tracking.runs import stored_runs

MODES = ("call", "model")
SCENARIOS = 4
CELLS = len(MODELS) * SCENARIOS
_LOADING = "starting llama server"  # in the server's log, once a load


class Measured(NamedTuple):
    seconds: float
    load_s: float  # as the server tells it, all cells together
    loads: int
    most_resident: int


def measure(mode: str, server: OllamaServer, home: Path, database: Path, experiment: str) -> Measured:
    loads_before = _loads(server)
    collection = collect(
        home,
        database,
        experiment,
        *("--models", ",".join(MODELS), "--prompts", "v1", "--n-scenarios", str(SCENARIOS)),
        *("--max-tokens", "16", "--unload", mode, "--ollama-url", server.url),
    )
    with opened(f"sqlite:///{database}") as store:
        runs = stored_runs(store, store.experiment(experiment))
    if len(runs) != CELLS:
        raise SystemExit(f"{experiment} holds {len(runs)} cells, not {CELLS}; the figures mean nothing")
    return Measured(
        collection.seconds,
        sum(run.metrics["gen/load_s"] for run in runs),
        _loads(server) - loads_before,
        int(max(run.metrics["ram/resident_models_peak"] for run in runs)),
    )


def _loads(server: OllamaServer) -> int:
    return server.log.read_text(errors="replace").count(_LOADING)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2, help="how often each is run, in turn")
    rounds = parser.parse_args().rounds
    if reason := unsupported_reason():
        raise SystemExit(reason)
    measured: dict[str, list[Measured]] = {mode: [] for mode in MODES}
    with scratch_folders() as new_folder, OllamaServer.start(default_cache()) as server:
        home, database = new_folder(), new_folder() / "mlflow.db"
        measure("model", server, home, database, "tip-bench-warm-up")
        for number in range(1, rounds + 1):
            for mode in MODES:
                one = measure(mode, server, home, database, f"tip-bench-{mode}-{number}")
                measured[mode].append(one)
                out.print(f"round {number}: --unload {mode} {one.seconds:.1f} s", style="dim")
    rows = [(f"--unload {mode}", *_figures(measured[mode])) for mode in MODES]
    columns = ("mode", "s", "s/cell", "loading, s", "loads", "most models in memory")
    show(f"{CELLS} cells on {len(MODELS)} models: median and range of {rounds} rounds", columns, rows)
    ratio = median(one.seconds for one in measured["call"]) / median(one.seconds for one in measured["model"])
    out.print(f"--unload call / --unload model: {ratio:.1f}×")
    most = max(one.most_resident for mode in MODES for one in measured[mode])
    out.print(f"never more than {most} model in memory" if most == 1 else f"{most} models were in memory at once")
    return 0 if most == 1 else 1


def _figures(rounds: list[Measured]) -> tuple[str, ...]:
    seconds = [one.seconds for one in rounds]
    return (
        f"{median(seconds):.1f} ({min(seconds):.1f}–{max(seconds):.1f})",
        f"{median(seconds) / CELLS:.2f}",
        f"{median(one.load_s for one in rounds):.1f}",
        f"{median(one.loads for one in rounds):g}",
        str(max(one.most_resident for one in rounds)),
    )


if __name__ == "__main__":
    sys.exit(main())
