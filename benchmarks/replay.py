"""Replay's estimators beside those of the Open Bandit Pipeline (obp), on the same logged decisions.

    .venv/bin/python -m benchmarks.replay    # installs obp on demand: a minute and 500 MB

obp runs in an environment of its own. It makes two logs itself, of the handwritten digits as in its README and of
synthetic data, each with a model of rewards that it fits; the others are ours, of the digits and of simulated users,
with our model: version 2 from a log of version 1, and version 3, with a prior and without, from a log of version 2. All
go through both. Promise: no estimate differs by more than 1e-6. Then the time that a replay takes, and what it says.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from benchmarks.bandit import OBP, UNDER_OBP
from benchmarks.parts.bandit_log import BanditLog, digits_log, read_log
from benchmarks.parts.environments import interpreter_with
from benchmarks.parts.logged_lives import chosen_by, drawn_users, logged, write_log
from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.table import out, show
from tipbench.core.paths import decisions_folder
from tipbench.recommender.features.v1 import V1
from tipbench.recommender.features.v2 import V2
from tipbench.recommender.policies.catalog import POLICIES
from tipbench.recommender.policies.egreedy import Decay, EGreedy
from tipbench.recommender.policies.interface import Policy
from tipbench.recommender.policies.ucb import Ucb
from tipbench.recommender.replay.evaluation import DR, IPS, SNIPS, Columns, Estimated, first_part, train
from tipbench.recommender.simulation.rollout import SimulatedPrior
from tipbench.recommender.simulation.simulated_prior import fit_simulated
from tipbench.server.jobs.simulation_asked import built_in_world

LARGEST_DIFFERENCE = 1e-6
KNOWN = {"truth": 0.96343402, IPS: 0.98103843}  # of obp's digits, as its README has them
SIZES, STEPS = (10_000, 100_000), 200
V1_LOGS, V2_LOGS = EGreedy("egreedy", V1, decay=Decay(floor=0.2)), EGreedy("egreedy/v2", V2, decay=Decay(floor=0.2))
SERVED_BY = {"egreedy/v2": "egreedy", "ucb/v3": "egreedy/v2"}  # candidates of whole replays, and who served
_ROOT = Path(__file__).parents[1]
Result = TypeVar("Result")


def estimates(log: BanditLog) -> dict[str, float]:
    found = Estimated(
        Columns(
            users=np.arange(len(log.action)),
            rewards=log.reward,
            logged=log.of_action(log.logged),
            target=log.of_action(log.asked),
            expected_logged=log.of_action(log.expected),
            expected_target=(log.asked * log.expected).sum(axis=1),
        )
    )
    return {name: estimate.value for name, estimate in found.values.items()}


def simulated_users(candidate: Policy[Any], served_by: Policy[Any]) -> BanditLog:
    """40 users of 200 decisions; the candidate knows the first half."""
    lives = logged(drawn_users(built_in_world(2), 40, STEPS, 1), served_by)
    learned = first_part(lives.rounds, 0.5)
    known = train(lives.rounds, candidate, learned)
    rest = list(lives.rounds.read(~learned))
    return BanditLog(
        action=np.array([one.chosen for one in rest]),
        reward=np.array([one.reward for one in rest]),
        logged=lives.propensities[~learned],
        asked=np.array(
            [chosen_by(candidate, known.states.at(one), one.request, one.at_ms).propensities for one in rest]
        ),
        expected=np.array([known.model.expected(one.user, known.model.features.matrix(one.request)) for one in rest]),
    )


def beside_obp(folder: Path) -> bool:
    from sklearn.datasets import load_digits

    digits_log(*load_digits(return_X_y=True)).write(folder / "digits, nearest mean.npz")
    ucb = POLICIES["ucb/v3"]
    assert isinstance(ucb, Ucb)
    prior = fit_simulated(SimulatedPrior("fitted", "ucb/v3"), built_in_world(2))
    simulated_users(POLICIES["egreedy/v2"], V1_LOGS).write(folder / "egreedy v2 from a log of v1.npz")
    simulated_users(ucb, V2_LOGS).write(folder / "ucb v3 from a log of v2.npz")
    simulated_users(ucb.with_prior(prior), V2_LOGS).write(folder / "ucb v3 with a prior from a log of v2.npz")
    python = interpreter_with("obp", UNDER_OBP, [OBP])
    answer = subprocess.run(
        [str(python), "-m", "benchmarks.parts.contenders.obp_estimates", str(folder)],
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    theirs = json.loads(answer.stdout)
    rows, worst = [], 0.0
    for name, said in theirs["estimates"].items():
        truth = theirs["truths"].get(name)
        ours = estimates(read_log(folder / f"{name}.npz"))
        for way in (IPS, SNIPS, DR):
            apart = abs(ours[way] - said[way])
            worst = max(worst, apart)
            values = (f"{ours[way]:.8f}", f"{said[way]:.8f}", f"{apart:.1e}")
            rows.append((name, way, *values, "" if truth is None else f"{truth:.8f}"))
    show("Estimates from the same decisions", ("log", "estimator", "tipbench", "obp", "apart", "truth"), rows)
    out.print(f"Largest difference: {worst:.1e} (wanted: at most {LARGEST_DIFFERENCE:.0e})")
    digits = {"truth": theirs["truths"]["obp's digits"], IPS: theirs["estimates"]["obp's digits"][IPS]}
    for name, known in KNOWN.items():
        same = "reproduced" if abs(digits[name] - known) < 1e-8 else f"came out as {digits[name]:.8f} here"
        out.print(f"obp's digits, {name} {known}: {same}")
    return worst <= LARGEST_DIFFERENCE


class Run(NamedTuple):
    log_mb: float
    seconds: float
    peak_mb: float
    verdict: str


def show_speed(new_folder: Callable[[], Path]) -> None:
    rows = []
    for candidate, served_by in SERVED_BY.items():
        for decisions in SIZES:
            home = new_folder()
            _apart(_write, decisions_folder(home), decisions, served_by)
            run = _apart(_replay, home, candidate)
            numbers = (
                f"{run.log_mb:.0f}",
                f"{run.seconds:.1f}",
                f"{decisions / run.seconds:,.0f}",
                f"{run.peak_mb:.0f}",
            )
            rows.append((candidate, served_by, f"{decisions:,}", *numbers, run.verdict))
    columns = ("candidate", "served by", "decisions", "log, MB", "CPU s", "decisions/s", "peak, MB", "verdict")
    show("tipbench sim replay among 10 candidates, start to exit", columns, rows)


def _apart(work: Callable[..., Result], *given: object) -> Result:
    """In a new process: what it starts has its memory, at first."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *given).result()


def _write(folder: Path, decisions: int, served_by: str) -> None:
    users = drawn_users(built_in_world(2), decisions // STEPS, STEPS, 2)
    write_log(folder, users, POLICIES[served_by])


def _replay(home: Path, candidate: str) -> Run:
    words = [sys.executable, "-m", "tipbench", "sim", "replay", "--candidate", candidate, "--format", "json"]
    with (home / "said").open("w+") as said, (home / "log").open("w") as log:
        environment = {**os.environ, "TIPBENCH_HOME": str(home)}
        process = subprocess.Popen(words, env=environment, stdout=said, stderr=log)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        verdict = json.load(said)["verdict"]["status"]
    log_mb = sum(path.stat().st_size for path in decisions_folder(home).iterdir()) / 1e6
    return Run(log_mb, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6, verdict)


def main() -> int:
    with scratch_folders() as new_folder:
        same = beside_obp(new_folder())
        show_speed(new_folder)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
