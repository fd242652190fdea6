"""960 cells (4 models × 3 prompts × 80 scenarios), command start to exit: tipbench, promptfoo and Inspect AI.

    .venv/bin/python -m benchmarks.peers            # installs the peers on demand: some minutes and 1.8 GB
    .venv/bin/python -m benchmarks.peers --rounds 5

All three ask the same server, which answers at once, 16 requests at a time. Each is run twice a round: on an empty
store of its own, as on a user's first day, and once more, as on every other day. tipbench's time ends with all cells in
MLflow's database and their texts in its files; the peers keep their own logs and write no MLflow runs.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

import yaml

from benchmarks.parts.grid import PROMPTS, scenarios, write_suite
from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.stand_in import MODELS, stand_in_server
from benchmarks.parts.stored import stored_cells
from benchmarks.parts.table import out, show, verdict

CELLS = len(MODELS) * len(PROMPTS) * len(scenarios())
AT_ONCE = 16
PROMPTFOO = "promptfoo@0.121.20"
INSPECT = ("inspect-ai==0.3.285", "openai==3.49.0")
_PEERS = Path(__file__).parent / ".peers"
_INSPECT_TASKS = """
import json
from pathlib import Path
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.solver import generate

GRID = json.loads(Path(__file__).with_name("grid.json").read_text())

def made(prompt):
    return Task(dataset=[Sample(input=GRID["prompts"][prompt] + text) for text in GRID["scenarios"]], solver=generate())

@task
def v1():
    return made("v1")

@task
def v2_mentor():
    return made("v2-mentor")

@task
def v3_few_shot():
    return made("v3-few-shot")
"""

Tool = Callable[[Path, str, int], tuple[float, int]]  # (folder, server, which run) → seconds, cells it has answers of


def tipbench(folder: Path, server: str, number: int) -> tuple[float, int]:
    suite = folder / "suite"
    if not suite.exists():
        write_suite(suite)
    database = folder / "mlflow.db"
    before = stored_cells(database) if database.exists() else 0
    environment = {"TIPBENCH_OPENAI_URL": server, "TIPBENCH_HOME": str(folder / "home")}
    seconds = _timed([*_tipbench_command(suite, database), "--seed", str(number)], folder, environment)
    return seconds, stored_cells(database) - before


def _tipbench_command(suite: Path, database: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "tipbench", "collect", "--suite", str(suite)),
        *("--models", ",".join(f"openai/{model}" for model in MODELS), "--prompts", ",".join(PROMPTS)),
        *("--experiment", "grid-bench-1", "--mlflow-url", f"sqlite:///{database}", "--concurrency", str(AT_ONCE)),
    ]


def promptfoo(folder: Path, server: str, number: int) -> tuple[float, int]:
    config = {
        "prompts": [text + "{{scenario}}" for text in PROMPTS.values()],
        "providers": [
            {"id": f"openai:chat:{model}", "config": {"apiBaseUrl": server, "apiKey": "none", "temperature": 0.7}}
            for model in MODELS
        ],
        "tests": [{"vars": {"scenario": text}} for text in scenarios().values()],
    }
    (folder / "promptfooconfig.yaml").write_text(yaml.safe_dump(config))
    command = [
        *(str(_PEERS / "node_modules/.bin/promptfoo"), "eval", "--no-cache", "-j", str(AT_ONCE)),
        *("--no-table", "--no-progress-bar", "--output", f"results-{number}.json"),
    ]
    quiet = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"}
    seconds = _timed(command, folder, {"PROMPTFOO_CONFIG_DIR": str(folder / "home"), **quiet})
    results = json.loads((folder / f"results-{number}.json").read_text())["results"]["results"]
    return seconds, sum(bool(result["response"]["output"]) for result in results)


def inspect_ai(folder: Path, server: str, number: int) -> tuple[float, int]:
    logs = folder / f"logs-{number}"
    (folder / "tasks.py").write_text(_INSPECT_TASKS)
    (folder / "grid.json").write_text(json.dumps({"prompts": PROMPTS, "scenarios": list(scenarios().values())}))
    command = [
        *(str(_PEERS / "inspect/bin/inspect"), "eval", "tasks.py", "--display", "plain"),
        *("--model", ",".join(f"openai-api/local/{model}" for model in MODELS)),
        *("--max-connections", str(AT_ONCE), "--max-tasks", str(len(MODELS)), "--log-dir", str(logs)),
    ]
    seconds = _timed(command, folder, {"LOCAL_BASE_URL": server, "LOCAL_API_KEY": "none", "HOME": str(folder)})
    samples = 0
    for log in logs.glob("*.eval"):
        with zipfile.ZipFile(log) as archive:
            samples += sum(name.startswith("samples/") for name in archive.namelist())
    return seconds, samples


def _timed(command: list[str], folder: Path, environment: dict[str, str]) -> float:
    started = time.monotonic()
    here = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])} | environment
    done = subprocess.run(command, cwd=folder, env=here, capture_output=True, text=True, timeout=300, check=False)
    seconds = time.monotonic() - started
    if done.returncode not in (0, 100):  # promptfoo's status for "some assertions failed"
        raise SystemExit(f"{' '.join(command[:4])} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return seconds


def install_peers() -> None:
    """Into a folder of their own, once."""
    if not (_PEERS / "node_modules/.bin/promptfoo").exists():
        out.print(f"Installing {PROMPTFOO} from npm: some minutes, 1.4 GB …")
        _PEERS.mkdir(exist_ok=True)
        subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", PROMPTFOO], cwd=_PEERS, check=True)
    if not (_PEERS / "inspect/bin/inspect").exists():
        out.print(f"Installing {INSPECT[0]} …")
        subprocess.run([sys.executable, "-m", "venv", str(_PEERS / "inspect")], check=True)
        subprocess.run([str(_PEERS / "inspect/bin/pip"), "install", "--quiet", *INSPECT], check=True)


TOOLS: dict[str, Tool] = {"tipbench": tipbench, "promptfoo": promptfoo, "Inspect AI": inspect_ai}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="how often each is run, in turn")
    rounds = parser.parse_args().rounds
    install_peers()
    first: dict[str, list[float]] = {name: [] for name in TOOLS}
    later: dict[str, list[float]] = {name: [] for name in TOOLS}
    with stand_in_server() as server, scratch_folders() as new_folder:
        for number in range(rounds):
            for name, tool in TOOLS.items():
                folder = new_folder()
                for which, of_round in enumerate((first, later)):
                    seconds, cells = tool(folder, server, which)
                    if cells != CELLS:
                        raise SystemExit(f"{name} has {cells} cells of {CELLS}; its time means nothing")
                    of_round[name].append(seconds)
                out.print(
                    f"round {number + 1}: {name} {first[name][-1]:.1f} s, then {later[name][-1]:.1f} s", style="dim"
                )
    ours = median(later["tipbench"])
    rows = [
        (
            name,
            f"{median(first[name]):.1f} ({min(first[name]):.1f}–{max(first[name]):.1f})",
            f"{median(later[name]):.1f} ({min(later[name]):.1f}–{max(later[name]):.1f})",
            f"{CELLS / median(later[name]):.0f}",
            f"{median(later[name]) / ours:.1f}",
        )
        for name in TOOLS
    ]
    columns = ("tool", "first run, s", "next run, s", "cells/s", "times tipbench's")
    show(f"{CELLS} cells, command start to exit: median and range of {rounds} rounds", columns, rows)
    kept_promises = []
    for name, wanted in (("promptfoo", 2), ("Inspect AI", 5)):
        kept_promises.append(verdict(f"{name} / tipbench", median(later[name]) / ours, wanted))
        out.print(f"  on the first run: {median(first[name]) / median(first['tipbench']):.1f}×")
    return 0 if all(kept_promises) else 1


if __name__ == "__main__":
    sys.exit(main())
