"""960 cells (4 models × 3 prompts × 80 scenarios), command start to exit: tipbench, promptfoo and Inspect AI.

    .venv/bin/python -m benchmarks.peers            # installs the peers on demand: some minutes and 1.8 GB
    .venv/bin/python -m benchmarks.peers --before FOLDER     # beside the tipbench in another checkout

All three ask the same server, which answers at once, 16 requests at a time. Each is run twice a round: on an empty
store of its own, as on a user's first day, and once more, as on every other day. tipbench's time ends with all cells in
MLflow's database and their texts in its files; the peers keep their own logs and write no MLflow runs. Beside them, a
bare loop asks with tipbench's HTTP client and forgets the answers. Memory is the peak of the largest process.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import yaml

from benchmarks.parts.checkouts import THIS, Checkout, add_before, checkouts
from benchmarks.parts.collecting import RUSAGE_UNIT
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

_BARE_LOOP = """
import json, sys
from concurrent.futures import ThreadPoolExecutor
from tipbench.core.http_pool import HttpPool

grid = json.loads(open("grid.json").read())
pool = HttpPool(sys.argv[1])

def ask(body):
    return pool.request("POST", "/chat/completions", body, max_bytes=8_000_000, timeout_s=60).json()

bodies = [
    json.dumps({"model": model, "messages": [{"role": "user", "content": prompt + text}]}).encode()
    for model in grid["models"] for prompt in grid["prompts"].values() for text in grid["scenarios"]
]
with ThreadPoolExecutor(int(sys.argv[2])) as threads:
    print(sum(bool(answer["choices"]) for answer in threads.map(ask, bodies)))
"""


class Ended(NamedTuple):
    """A command that ended well."""

    seconds: float
    peak_mb: float
    output: str


class Run(NamedTuple):
    """One run of a tool."""

    seconds: float
    peak_mb: float
    cells: int  # that it has answers of


Tool = Callable[[Path, str, int], Run]  # folder, server, which run


def tipbench(folder: Path, server: str, number: int, checkout: Checkout = THIS) -> Run:
    suite = folder / "suite"
    if not suite.exists():
        write_suite(suite)
    database = folder / "mlflow.db"
    before = stored_cells(database) if database.exists() else 0
    environment = {"TIPBENCH_OPENAI_URL": server, "TIPBENCH_HOME": str(folder / "home"), **checkout.environment}
    command = [*checkout.command, *_collect_words(suite, database), "--seed", str(number)]
    ended = _timed(command, folder, environment)
    return Run(ended.seconds, ended.peak_mb, stored_cells(database) - before)


def _collect_words(suite: Path, database: Path) -> list[str]:
    return [
        *("collect", "--suite", str(suite)),
        *("--models", ",".join(f"openai/{model}" for model in MODELS), "--prompts", ",".join(PROMPTS)),
        *("--experiment", "grid-bench-1", "--mlflow-url", f"sqlite:///{database}", "--concurrency", str(AT_ONCE)),
    ]


def promptfoo(folder: Path, server: str, number: int) -> Run:
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
    ended = _timed(command, folder, {"PROMPTFOO_CONFIG_DIR": str(folder / "home"), **quiet})
    results = json.loads((folder / f"results-{number}.json").read_text())["results"]["results"]
    return Run(ended.seconds, ended.peak_mb, sum(bool(result["response"]["output"]) for result in results))


def inspect_ai(folder: Path, server: str, number: int) -> Run:
    logs = folder / f"logs-{number}"
    (folder / "tasks.py").write_text(_INSPECT_TASKS)
    (folder / "grid.json").write_text(json.dumps({"prompts": PROMPTS, "scenarios": list(scenarios().values())}))
    command = [
        *(str(_PEERS / "inspect/bin/inspect"), "eval", "tasks.py", "--display", "plain"),
        *("--model", ",".join(f"openai-api/local/{model}" for model in MODELS)),
        *("--max-connections", str(AT_ONCE), "--max-tasks", str(len(MODELS)), "--log-dir", str(logs)),
    ]
    ended = _timed(command, folder, {"LOCAL_BASE_URL": server, "LOCAL_API_KEY": "none", "HOME": str(folder)})
    samples = 0
    for log in logs.glob("*.eval"):
        with zipfile.ZipFile(log) as archive:
            samples += sum(name.startswith("samples/") for name in archive.namelist())
    return Run(ended.seconds, ended.peak_mb, samples)


def bare_loop(folder: Path, server: str, number: int) -> Run:  # noqa: ARG001 - as of the others
    grid = {"models": MODELS, "prompts": PROMPTS, "scenarios": list(scenarios().values())}
    (folder / "grid.json").write_text(json.dumps(grid))
    ended = _timed([sys.executable, "-c", _BARE_LOOP, server, str(AT_ONCE)], folder, {})
    return Run(ended.seconds, ended.peak_mb, int(ended.output))


def _timed(command: list[str], folder: Path, environment: dict[str, str]) -> Ended:
    here = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])} | environment
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as printed:
        started = time.monotonic()
        process = subprocess.Popen(command, cwd=folder, env=here, stdout=printed, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        printed.seek(0)
        if process.returncode not in (0, 100):  # promptfoo's status for "some assertions failed"
            raise SystemExit(f"{' '.join(command[:4])} ended with {process.returncode}:\n{said.read()[-2000:]}")
        return Ended(seconds, used.ru_maxrss * RUSAGE_UNIT / 1e6, printed.read())


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


OTHERS: dict[str, Tool] = {"promptfoo": promptfoo, "Inspect AI": inspect_ai, "bare loop": bare_loop}
DOES = {
    THIS.name: "journal, MLflow runs and files, answers read by the suite's contract",
    "promptfoo": "log in SQLite and JSON",
    "Inspect AI": "log as a zip of JSON",
    "bare loop": "nothing",
}
WANTED = {"promptfoo": 4, "Inspect AI": 12}
RUNS = ("first", "next")
Measured = dict[str, dict[str, list[Run]]]  # by which run, and by the tool's name


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="how often each is run, in turn")
    add_before(parser)
    asked = parser.parse_args()
    install_peers()
    tools: dict[str, Tool] = {one.name: partial(tipbench, checkout=one) for one in checkouts(asked.before)} | OTHERS
    measured: Measured = {which: {name: [] for name in tools} for which in RUNS}
    with stand_in_server() as server, scratch_folders() as new_folder:
        for number in range(asked.rounds):
            for name, tool in tools.items():
                folder = new_folder()
                for at, which in enumerate(RUNS):
                    run = tool(folder, server, at)
                    if run.cells != CELLS:
                        raise SystemExit(f"{name} has {run.cells} cells of {CELLS}; its time means nothing")
                    measured[which][name].append(run)
                seconds = ", then ".join(f"{measured[which][name][-1].seconds:.1f} s" for which in RUNS)
                out.print(f"round {number + 1}: {name} {seconds}", style="dim")
    _show(measured, asked.rounds)
    reached = [
        verdict(f"{name} / tipbench, {which} run", _times_ours(measured[which], name), wanted)
        for name, wanted in WANTED.items()
        for which in RUNS
    ]
    return 0 if all(reached) else 1


def _seconds(runs: Sequence[Run]) -> float:
    return median(run.seconds for run in runs)


def _times_ours(measured: Mapping[str, Sequence[Run]], name: str) -> float:
    return _seconds(measured[name]) / _seconds(measured[THIS.name])


def _show(measured: Measured, rounds: int) -> None:
    rows = []
    for name in measured[RUNS[0]]:
        row = [name]
        for which in RUNS:
            runs = measured[which][name]
            span = f"{min(run.seconds for run in runs):.1f}–{max(run.seconds for run in runs):.1f}"
            row += [f"{_seconds(runs):.1f} ({span})", f"{_times_ours(measured[which], name):.1f}"]
        row.append(f"{max(run.peak_mb for which in RUNS for run in measured[which][name]):.0f}")
        rows.append([*row, DOES.get(name, "")])
    columns = ("tool", "first run, s", "× ours", "next run, s", "× ours", "peak MB", "beside asking")
    show(f"{CELLS} cells, command start to exit: median and range of {rounds} rounds", columns, rows)


if __name__ == "__main__":
    sys.exit(main())
