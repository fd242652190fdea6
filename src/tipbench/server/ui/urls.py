"""URLs of all pages.

Experiment names are arbitrary text, so they go into the query, never into a path: proxies and servers interpret a slash
or two dots in a path, however they are quoted.
"""

from urllib.parse import quote, urlencode

EXPERIMENTS = "/experiments"
JOBS = "/jobs"
JUDGES = "/judges"
SUITES = "/suites"
SUITE = "/suites/suite"
UNREGISTER = "/suites/unregister"
PROPOSED_ANCHORS = "/suites/anchors"
ACCEPT_ANCHOR = "/suites/anchors/accept"
JUDGING = "/judging"
MLFLOW = "/mlflow/"
TERMS = "/terms"
RECOMMENDER = "/recommender"
SIMULATIONS = "/recommender/simulations"
GATES = "/recommender/gates"
REPLAYS = "/recommender/replays"
PRIORS = "/recommender/priors"
SHADOWS = "/recommender/shadows"
PROMOTIONS = "/recommender/promotions"
LEADERBOARD = "/experiments/leaderboard"
EXPERIMENT_ANSWER = "/experiments/answer"
REPORT = "/experiments/report.html"
JSON = "/experiments/leaderboard.json"
CSV = "/experiments/leaderboard.csv"
ACCEPT = "/experiments/accept"
ASK = "/experiments/ask"
RUN_JUDGE = "/experiments/judge"
PUBLISH = "/experiments/publish"
REWARDS = "/experiments/rewards"
TEXTS = "/experiments/texts"
DECISION = "/experiments/decision"
NEW_DECISION = "/experiments/decision/new"
DECISION_LIVE = "/experiments/decision/live"
STOP_DECISION = "/experiments/decision/stop"
CONTINUE_DECISION = "/experiments/decision/continue"
NEW_RUN = "/runs/new"
RUN_SUITE = "/runs/suite"
RUNS = "/experiments/runs"
RUN = "/experiments/run"
ANSWER = "/experiments/run/answer.txt"


def with_query(path: str, **query: str | int | None) -> str:
    """Return the path with a query; parameters that are None are left out."""
    present = {key: value for key, value in query.items() if value is not None}
    return f"{path}?{urlencode(present, errors='replace')}" if present else path


def leaderboard(experiment: str) -> str:
    return with_query(LEADERBOARD, experiment=experiment)


def decision(experiment: str) -> str:
    return with_query(DECISION, experiment=experiment)


def runs(experiment: str, **wanted: str | int | None) -> str:
    return with_query(RUNS, experiment=experiment, **wanted)


def texts(experiment: str, **wanted: str | int | None) -> str:
    return with_query(TEXTS, experiment=experiment, **wanted)


def run(experiment: str, run_id: str) -> str:
    return with_query(RUN, experiment=experiment, run=run_id)


def answer(experiment: str, run_id: str) -> str:
    return with_query(ANSWER, experiment=experiment, run=run_id)


def judging(experiment: str) -> str:
    return with_query(JUDGING, experiment=experiment)


def suite(name: str, **wanted: str | None) -> str:
    return with_query(SUITE, suite=name, **wanted)


def proposed_anchors(name: str, experiment: str, tolerance: int = 0) -> str:
    return with_query(PROPOSED_ANCHORS, suite=name, experiment=experiment, tolerance=tolerance or None)


def job(job_id: str) -> str:
    return f"{JOBS}/{quote(job_id, safe='')}"


def simulation(simulation_id: str) -> str:
    return f"{SIMULATIONS}/{quote(simulation_id, safe='')}"


def gate(gate_id: str) -> str:
    return f"{GATES}/{quote(gate_id, safe='')}"


def replay(replay_id: str) -> str:
    return f"{REPLAYS}/{quote(replay_id, safe='')}"


def static(name: str) -> str:
    return f"/static/{quote(name)}"
