"""A recommender's room for tests: real records in a real home, and simulations that are what they are told to be."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.recommender.gates import a_result, next_second
from tipbench.core.errors import NotFound
from tipbench.core.paths import signals_folder
from tipbench.core.settings import Settings
from tipbench.core.untrusted import json_text
from tipbench.recommender.features.v2 import NAMES
from tipbench.recommender.log.segmented_log import SegmentLog
from tipbench.recommender.promotion.gate_records import store_gate
from tipbench.recommender.promotion.interface import Act
from tipbench.recommender.replay.record import store_replay
from tipbench.recommender.shadows.statistics import ShadowStatisticsReader
from tipbench.recommender.simulation.outcome import arm_data
from tipbench.recommender.simulation.rollout import arm
from tipbench.recommender.store.moving import open_store
from tipbench.server.jobs.interface import Job, UnknownJob
from tipbench.server.jobs.progress import Progress
from tipbench.server.jobs.simulation_asked import SimulationAsked
from tipbench.server.jobs.simulations import SimulationRunner
from tipbench.server.views.gates import Gates
from tipbench.server.views.recommender import Priors, Promotions, RecommenderViews
from tipbench.server.views.replays import Replays
from tipbench.server.views.simulations import Simulations

BINS = [10, 20, 30]
GATE = {"kind": "gate", "candidate": "egreedy/v2", "incumbent": "egreedy", "seeds": 10, "steps": 30}
RUN = {"kind": "run", "policies": ["egreedy", "linucb"], "seeds": 10, "steps": 30}


def a_metric(mean: float, margin: float | None = 0.02) -> dict[str, Any]:
    over_time = [mean - 0.1, mean, mean + 0.1]
    return {
        "mean": mean,
        "margin": margin,
        "total": 30 * mean,
        "over_time": over_time,
        "over_time_margin": [margin] * len(over_time),
    }


def by_policy(names: list[str], margin: float | None = 0.02) -> dict[str, Any]:
    """The first is the best."""
    return {
        name: {
            "reward": a_metric(0.5 - 0.1 * place, margin),
            "completed": a_metric(0.4, margin),
            "dismissed": a_metric(0.2, margin),
            "regret": a_metric(0.1 + 0.1 * place, margin),
        }
        for place, name in enumerate(names)
    }


def an_outcome(text: str = "", margin: float | None = 0.02, names: tuple[str, ...] = ("egreedy", "linucb")) -> Any:
    """Two personas, one of them a control; `text` is in every name that a file can give."""
    arms = [f"{name}{text}" for name in names]
    personas = [
        {"name": f"planner{text}", "about": text or "plans", "control": False, "arms": by_policy(arms, margin)},
        {"name": f"chaotic{text}", "about": text or "by chance", "control": True, "arms": by_policy(arms, margin)},
    ]
    plan = {
        "simulator": 1,
        "world": {"name": text or "tips", "digest": "d" * 64},
        "arms": [{"name": name} for name in arms],
        "seeds": {"first": 0, "count": 1 if margin is None else 10},
        "steps": 30,
        "offered": 10,
    }
    return {"schema": 1, "plan": plan, "bins": BINS, "overall": by_policy(arms, margin), "personas": personas}


def a_gate(
    home: Path,
    passed: bool = True,
    text: str = "",
    candidate: str = "egreedy/v2",
    world: str | None = None,
    older: bool = False,
) -> str:
    """Kept as a real one is, or as one from before version 3; its id. Newer than all that were made before."""
    result = a_result(candidate, "egreedy", passed)
    roles = result["gate"].pop("roles").values()
    if older:
        del result["plan"]["arms"][2:4]
    names = [f"{one['name']}{text}" for one in result["plan"]["arms"]]
    for one, name in zip(result["plan"]["arms"], names, strict=True):
        one["name"] = name
    if text:
        result["plan"]["arms"][0]["parameters"] = {text: text}
        result["plan"]["world"]["name"] = text
    if world:
        result["plan"]["world"]["digest"] = world
    again = f"egreedy, again{text}"
    conditions = [
        {"name": "gains overall", "passed": passed, "reason": text or "it gains what it gains"},
        {
            "name": f"{again} fails",
            "passed": True,
            "reason": text or "the incumbent itself fails, as it must",
        },
    ]
    gains = [
        {"persona": f"planner{text}", "control": False, "gain": 0.2, "lower_bound": 0.1, "wins": passed},
        {"persona": f"chaotic{text}", "control": True, "gain": 0.0, "lower_bound": -0.06, "wins": False},
    ]
    result["gate"] |= {"conditions": conditions, "personas": gains}
    if not older:
        scores = [{"name": name, "means": [0.25, 0.3], "margins": [0.01, 0.02]} for name in names]
        result["gate"] |= {
            "says": f"It may go live{text}." if passed else f"It may not go live{text}.",
            "roles": dict(zip(names, roles, strict=True)),
            "scorecard": {"stages": [f"1–10{text}", "11–30"], "arms": scores},
        }
    told = an_outcome(text, names=tuple(names))
    told["overall"] = by_policy(names)
    for persona in told["personas"]:
        persona["arms"] = by_policy(names)
    return store_gate(home, {**told, "plan": result["plan"], "gate": result["gate"]}, next_second)


def a_replay(home: Path, status: str = "passed", text: str = "", estimated: bool = True) -> str:
    """Kept as a real one is; its id. Newer than all that were made before."""
    value, gain = {"mean": 0.34, "margin": 0.09}, {"mean": 0.2, "margin": None}
    found = {
        "candidate": {**arm_data(arm("egreedy/v2")), "name": f"egreedy/v2{text}"},
        "share": 0.5,
        "log": {"decisions": 8000, "first_ms": 0, "last_ms": 86_400_000, "left_out": {"no_reward": 3, "no_chance": 0}},
        "learned": 4000,
        "evaluated": 4000 if estimated else 0,
        "with_profile": 3990 if estimated else 0,
        "users": 40 if estimated else 0,
        "rules": {"least_effective": 200.0, "fewest_users": 10},
        "decides": "DR",
        "effective_sample": 455.2 if estimated else 0.0,
        "largest_weight": 9.1 if estimated else 0.0,
        "served": {"mean": 0.14, "margin": 0.03} if estimated else None,
        "estimates": {f"{name}{text}": {"value": value, "gain": gain} for name in ("IPS", "DR")} if estimated else {},
        "verdict": {"passed": status == "passed", "status": status, "reason": text or "by DR it earns what it earns"},
    }
    return store_replay(home, found, next_second() * 1000)


def record(settings: Settings, act: str, left: str, to: str, gate: str | None = None) -> None:
    """A promotion or a rollback."""
    store = open_store(settings)
    done = {"left": left, "to": to, "gate": gate, "replay": None, "candidate": arm_data(arm(to))}
    known = len(store.promotions.history())
    store.promotions.append(Act.model_validate({"at_ms": next_second() * 1000, "act": act, **done}), known)
    store.close()


def a_signal(number: int = 0, at_ms: int = 0, shadow: str = "egreedy-v2-shadow", **more: Any) -> dict[str, Any]:
    """As a shadow publishes it, among four candidates."""
    rows = [[1.0] * 7 + [0.0, 0.0, 0.3, 0.1, -0.2]] * 4
    told = {"event_id": f"e{number}", "features": {"names": NAMES, "rows": rows}, "candidates": ["a", "b", "c", "d"]}
    counts = {"offered": number, "published": number, "dropped": {"full": 0, "late": 0, "failed": 0}, "in_flight": 0}
    at = {"schema": 1, "signal": f"shadow:{shadow}", "at_ms": at_ms}
    return {**at, **told, "agrees": number % 4 == 0, "latency_ms": 2.0 + number, "counts": counts, **more}


def signal(home: Path, *signals: Mapping[str, Any]) -> None:
    log = SegmentLog(signals_folder(home), lambda: 0.0)
    for one in signals:
        log.append(one)
    log.close()


@dataclass
class MadeSimulations(SimulationRunner):
    """A fake that nothing runs in."""

    found: dict[str, Job] = field(default_factory=dict)
    told: dict[str, Progress] = field(default_factory=dict)
    outcomes: dict[str, Any] = field(default_factory=dict)
    logged: str = ""

    def start(self, asked: SimulationAsked) -> Job:
        asked.check()
        job = Job(f"s{len(self.found)}", "queued", asked.model_dump(exclude_none=True), 1000 + len(self.found))
        self.found[job.id] = job
        return job

    def jobs(self, limit: int = 100, before_ms: int | None = None) -> list[Job]:
        newest = sorted(self.found.values(), key=lambda job: -job.created_ms)
        return [job for job in newest if before_ms is None or job.created_ms < before_ms][:limit]

    def job(self, job_id: str) -> Job:
        if job_id not in self.found:
            raise UnknownJob(f"there is no simulation '{job_id}'")
        return self.found[job_id]

    def progress(self, job_id: str) -> Progress:
        return self.told.get(job_id, Progress())

    def outcome(self, job_id: str) -> bytes:
        if self.job(job_id).state != "finished":
            raise NotFound("there is no outcome")
        return json_text(self.outcomes[job_id]).encode()

    def log(self, job_id: str, last_bytes: int = 20_000) -> str:
        return self.logged[-last_bytes:]

    def cancel(self, job_id: str) -> Job:
        self.found[job_id] = replace(self.job(job_id), cancelling=True)
        return self.found[job_id]

    def close(self) -> None:
        """Nothing to stop."""


def a_simulation(job_id: str = "s1", state: Any = "running", asked: Any = None, **more: Any) -> Job:
    now_ms = 1_777_300_000_000
    started = None if state == "queued" else now_ms - 90_000
    ended = now_ms if state in ("finished", "failed", "cancelled") else None
    return Job(job_id, state, asked or RUN, now_ms - 100_000, started, ended, **more)


def made_room(runner: SimulationRunner | None = None, settings: Settings | None = None) -> RecommenderViews:
    """In the home of the settings; by itself, in that of the test."""
    settings = settings or Settings()
    promotions = Promotions(settings)
    return RecommenderViews(
        simulations=Simulations(runner or MadeSimulations(), promotions.live),
        gates=Gates(settings.home),
        replays=Replays(settings.home),
        promotions=promotions,
        priors=Priors(settings),
        shadows=ShadowStatisticsReader(signals_folder(settings.home)),
    )
