"""May this policy go live? Only by a gate that was passed for exactly what would be served, and in place of whom."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tipbench.core.errors import Conflict, InvalidInput, NotFound, StateRefused
from tipbench.core.untrusted import printable, shown
from tipbench.recommender.policies.catalog import SERVED
from tipbench.recommender.promotion.gate_records import GateRecord, gate_records
from tipbench.recommender.promotion.interface import Act, Promotions, live_history
from tipbench.recommender.replay.record import ReplayRecord, replay_records
from tipbench.recommender.simulation.gate import FIRST_SEED, RULES, USUAL
from tipbench.recommender.simulation.outcome import arm_data
from tipbench.recommender.simulation.rollout import arm
from tipbench.recommender.simulation.user_model import SIMULATOR
from tipbench.recommender.simulation.world import World

_MORE_IS_STRICTER = ("least_gain", "least_wins", "level")
_LESS_IS_STRICTER = ("worst_loss",)
_CLOCKS_DIFFER_MS = 60_000


class PromotionRefused(InvalidInput):
    """The evidence is missing, or is for something else."""


@dataclass(frozen=True)
class Wanted:
    """What a gate has to have been held for."""

    candidate: dict[str, Any]
    incumbent: dict[str, Any]
    world: World
    world_file: Path | None = None  # None: the built-in world
    simulator: int = SIMULATOR

    @property
    def command(self) -> str:
        """That holds such a gate."""
        names = ("--candidate", self.candidate["name"], "--incumbent", self.incumbent["name"])
        world = ("--world", str(self.world_file)) if self.world_file else ()
        return shlex.join(("tipbench", "sim", "gate", *names, *world))


@dataclass(frozen=True)
class Decided:
    """An act that may be recorded, as long as no other one was since."""

    act: Act
    known: int  # acts that there were when it was decided
    gate: GateRecord | None = None


@dataclass(frozen=True)
class GateSearch:
    """Where the gate is looked for that allows a promotion, and in which world it was to be held."""

    home: Path
    world: World
    world_file: Path | None = None  # None: the built-in world
    gate_id: str | None = None  # None: the newest


def promotion(policy: str, promotions: Promotions, search: GateSearch, at_ms: int) -> Decided:
    """Decide on a promotion; raise InvalidInput, and say what is missing, where the policy may not go live."""
    if policy not in SERVED:
        raise NotFound(f"no policy {shown(policy)} can be served; there are {', '.join(SERVED)}")
    acts = promotions.history()
    live = live_history(acts, promotions.address)[-1]
    if policy == live:
        raise Conflict(f"{policy} is live already; 'tipbench recommend promotions' says since when")
    wanted = Wanted(arm_data(arm(policy)), _live_data(live), search.world, search.world_file)
    gates = _gates(search.home, search.gate_id, wanted)
    _check_clock(gates, at_ms)
    gate = fitting_gate(gates, wanted)
    replay = last_replay(replay_records(search.home).newest_first(), wanted.candidate)
    act = Act(
        at_ms=at_ms,
        act="promote",
        left=live,
        to=policy,
        gate=gate.id,
        replay=replay.id if replay else None,
        candidate=wanted.candidate,
    )
    return Decided(act, len(acts), gate)


def rollback(promotions: Promotions, at_ms: int) -> Decided:
    """To the policy that was live before the last one that was promoted and is not taken back yet."""
    acts = promotions.history()
    *before, live = live_history(acts, promotions.address)
    if not before:
        raise Conflict(f"{live} is live as it was in the beginning, so there is nothing to go back to")
    to = before[-1]
    if to not in SERVED:
        raise StateRefused(
            f"{shown(to)} was live before, and this tipbench can't serve it; install the one that could, or promote "
            f"another one: {', '.join(SERVED)}"
        )
    act = Act(at_ms=at_ms, act="rollback", left=live, to=to, gate=None, replay=None, candidate=arm_data(arm(to)))
    return Decided(act, len(acts))


def changed_since(acts: Sequence[Act]) -> list[str]:
    """How the live policy differs, in this tipbench, from what was promoted; nothing where it is the same."""
    if not acts or acts[-1].to not in SERVED:
        return []
    return _of_arm(acts[-1].to, acts[-1].candidate, arm_data(arm(acts[-1].to)))


def fitting_gate(newest_first: Sequence[GateRecord], wanted: Wanted) -> GateRecord:
    """The newest that was held for exactly this, if it was passed."""
    name = wanted.candidate["name"]
    if not newest_first:
        raise PromotionRefused(f"no gate was held for {name} yet; hold one: {wanted.command}")
    fitting = next((gate for gate in newest_first if not differences(gate, wanted)), None)
    if fitting is None:
        newest = newest_first[0]
        raise PromotionRefused(
            f"the gate {newest.id} does not count here: {'; '.join(differences(newest, wanted))}. "
            f"Hold another: {wanted.command}"
        )
    if not fitting.verdict.passed:
        failed = [f"{one.name}: {one.reason}" for one in fitting.verdict.conditions if not one.passed]
        raise PromotionRefused(
            f"the gate {fitting.id} was not passed ({printable('; '.join(failed), 600)}); {name} may go live once it "
            f"passes: {wanted.command}"
        )
    return fitting


def differences(gate: GateRecord, wanted: Wanted) -> list[str]:
    """What it was held for and is not what is wanted now; none where it fits."""
    found = [
        *_of_candidate(gate.candidate, wanted.candidate),
        *_of_incumbent(gate.incumbent, wanted.incumbent),
    ]
    if gate.plan.simulator != wanted.simulator:
        found.append(f"it was held in version {gate.plan.simulator} of the simulator, and this is {wanted.simulator}")
    world = gate.plan.world
    if world.digest != wanted.world.digest:
        found.append(
            f"it was held in the world {shown(world.name)} ({world.digest[:12]}), and wanted is "
            f"{shown(wanted.world.name)} ({wanted.world.digest[:12]})"
        )
    plan = gate.plan
    found += unfit(plan.seeds.first, plan.seeds.count, plan.steps, plan.offered)
    laxer = [name for name, value in asdict(RULES).items() if not _as_strict(name, gate.rules.get(name), value)]
    found += [f"its rule {name} was {shown(gate.rules.get(name))}, and is {asdict(RULES)[name]} now" for name in laxer]
    return found


def unfit(first_seed: int, seeds: int, steps: int, offered: int) -> list[str]:
    """Why no gate of this size and on these seeds counts; nothing where it is as large as the one whose error rates are
    known, and its seeds set no threshold."""
    sizes = (
        (seeds, USUAL.seeds, "seeds"),
        (steps, USUAL.steps, "decisions a life"),
        (offered, USUAL.offered, "tips to choose from"),
    )
    found = [f"it had {size} {of_what}, and {least} are the fewest" for size, least, of_what in sizes if size < least]
    if first_seed < FIRST_SEED:
        found.append(f"its seeds count from {first_seed}, and those below {FIRST_SEED} set the thresholds")
    return found


def last_replay(newest_first: Sequence[ReplayRecord], candidate: Mapping[str, Any]) -> ReplayRecord | None:
    """The newest that could tell anything about this candidate; refused where it did not speak for it."""
    telling = (replay for replay in newest_first if replay.candidate == candidate and replay.verdict.status != "thin")
    replay = next(telling, None)
    if replay and replay.verdict.status == "failed":
        raise PromotionRefused(
            f"the replay {replay.id} of what was served speaks against {candidate['name']}: "
            f"{printable(replay.verdict.reason, 300)}. Replay it again when more was served: "
            f"{shlex.join(('tipbench', 'sim', 'replay', '--candidate', candidate['name']))}"
        )
    return replay


def _gates(home: Path, gate_id: str | None, wanted: Wanted) -> list[GateRecord]:
    """The one that was named, else all that were held for this candidate."""
    if gate_id is None:
        return [
            gate for gate in gate_records(home).newest_first() if gate.candidate.get("name") == wanted.candidate["name"]
        ]
    try:
        return [gate_records(home).read(gate_id)]
    except NotFound as error:
        raise PromotionRefused(f"{error}; hold a gate: {wanted.command}") from error


def _check_clock(gates: Sequence[GateRecord], at_ms: int) -> None:
    """Which one is the newest can't be told where one was held after now."""
    ahead = next((gate for gate in gates if gate.made_ms > at_ms + _CLOCKS_DIFFER_MS), None)
    if ahead:
        raise PromotionRefused(
            f"the gate {ahead.id} was held {(ahead.made_ms - at_ms) / 60_000:,.0f} minutes after now, by its record; "
            "set this machine's clock right, or remove the record from recommender/gates in TIPBENCH_HOME"
        )


def _live_data(live: str) -> dict[str, Any]:
    if live not in SERVED:
        raise StateRefused(
            f"{shown(live)} is live, and this tipbench does not know it; install the one that promoted it, or take it "
            "back: tipbench recommend rollback"
        )
    return arm_data(arm(live))


def _of_candidate(recorded: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    if recorded.get("name") != wanted["name"]:
        return [f"it was held for {shown(recorded.get('name'))}, and not for {wanted['name']}"]
    return _of_arm("the candidate", recorded, wanted)


def _of_incumbent(recorded: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    if recorded.get("name") != wanted["name"]:
        return [f"it was won over {shown(recorded.get('name'))}, and {wanted['name']} is live now"]
    return _of_arm("the incumbent", recorded, wanted)


def _of_arm(who: str, recorded: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Parameters one by one."""
    then, now = _flat(recorded), _flat(wanted)
    return [
        f"{who}'s {name} was {shown(then.get(name))}, and is {shown(now.get(name))} now"
        for name in sorted({*then, *now})
        if then.get(name) != now.get(name)
    ]


def _flat(arm: Mapping[str, Any]) -> dict[str, Any]:
    parameters = arm.get("parameters")
    rest = {name.replace("_", " "): value for name, value in arm.items() if name != "parameters"}
    return rest | (parameters if isinstance(parameters, dict) else {"parameters": parameters})


def _as_strict(name: str, then: float | None, now: float) -> bool:
    """A rule that nobody knows the direction of has to be the same."""
    if then is None:
        return False
    if name in _MORE_IS_STRICTER:
        return then >= now
    return then <= now if name in _LESS_IS_STRICTER else then == now
