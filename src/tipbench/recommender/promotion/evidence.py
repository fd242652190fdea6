"""Whether a policy may go live: only with a gate passed for exactly this policy against exactly the live one."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tipbench.core.errors import Conflict, InvalidInput, NotFound, StateRefused, TipbenchError
from tipbench.core.untrusted import printable, shown
from tipbench.recommender.policies.catalog import SERVED, name_of
from tipbench.recommender.promotion.gate_records import GateRecord, gate_records
from tipbench.recommender.promotion.interface import Act, live_history
from tipbench.recommender.replay.record import ReplayRecord, replay_records
from tipbench.recommender.simulation.gate import DEFAULT_SIZE, FIRST_SEED, RULES, Lineup, lineup_of
from tipbench.recommender.simulation.outcome import arm_data
from tipbench.recommender.simulation.rollout import Arm, arm
from tipbench.recommender.simulation.world import World
from tipbench.recommender.store.interface import Store

_MORE_IS_STRICTER = ("least_gain", "least_wins", "least_prior_gain", "level")
_LESS_IS_STRICTER = ("worst_loss", "worst_prior_loss")
_CLOCKS_DIFFER_MS = 60_000


class PromotionRefused(InvalidInput):
    """The evidence is missing, negative, or for something else."""


@dataclass(frozen=True)
class GateRequirement:
    """What a gate must have been run for."""

    lineup: Lineup
    world: World
    world_file: Path | None = None  # None: the built-in world

    @property
    def arms(self) -> list[dict[str, Any]]:
        """What is simulated; the candidate and the incumbent first."""
        return [arm_data(one, self.world) for one in self.lineup.arms]

    @property
    def name(self) -> str:
        return self.lineup.candidate.name

    @property
    def command(self) -> str:
        """The command that runs such a gate."""
        names = ("--candidate", self.name, "--incumbent", self.lineup.incumbent.name)
        world = ("--world", str(self.world_file)) if self.world_file else ()
        return shlex.join(("tipbench", "sim", "gate", *names, *world))


@dataclass(frozen=True)
class ApprovedAct:
    """An act that may be recorded, as long as no other has been recorded since."""

    act: Act
    known: int  # number of acts at the time of the decision
    gate: GateRecord | None = None


@dataclass(frozen=True)
class GateSearch:
    """Where to find the gate that allows a promotion, and in which world it must have been run."""

    home: Path
    world: World
    world_file: Path | None = None  # None: the built-in world
    gate_id: str | None = None  # None: the newest


def promotion(policy: str, store: Store, search: GateSearch, at_ms: int) -> ApprovedAct:
    """Return an approved promotion of a policy, given by its identity.

    Raises PromotionRefused, with what is missing, if the policy may not go live; NotFound if it can't be served;
    Conflict if it is live already.
    """
    if name_of(policy) not in SERVED:
        raise NotFound(f"no policy {shown(policy)} can be served; there are {', '.join(SERVED)}")
    acts = store.promotions.history()
    live = live_history(acts, store.promotions.address)[-1]
    if policy == live:
        raise Conflict(f"{policy} is live already; 'tipbench recommend promotions' says since when")
    candidate = arm(policy, store.priors.read)
    lineup = lineup_of(candidate, _live_arm(live, store), search.world)
    wanted = GateRequirement(lineup, search.world, search.world_file)
    gates = _gates(search.home, search.gate_id, wanted)
    _check_clock(gates, at_ms)
    gate = fitting_gate(gates, wanted)
    replay = last_replay(replay_records(search.home).newest_first(), arm_data(candidate))
    act = Act(
        at_ms=at_ms,
        act="promote",
        left=live,
        to=policy,
        gate=gate.id,
        replay=replay.id if replay else None,
        candidate=arm_data(candidate),
    )
    return ApprovedAct(act, len(acts), gate)


def rollback(store: Store, at_ms: int) -> ApprovedAct:
    """Return an approved rollback to the policy that the last promotion not yet rolled back has replaced."""
    acts = store.promotions.history()
    *before, live = live_history(acts, store.promotions.address)
    if not before:
        raise Conflict(f"{live} has been live from the start, so there is nothing to roll back to")
    to = before[-1]
    if name_of(to) not in SERVED:
        raise StateRefused(
            f"{shown(to)} was live before, but this version of tipbench can't serve it; install the version that "
            f"could, or promote another policy: {', '.join(SERVED)}"
        )
    candidate = arm_data(arm(to, store.priors.read))
    act = Act(at_ms=at_ms, act="rollback", left=live, to=to, gate=None, replay=None, candidate=candidate)
    return ApprovedAct(act, len(acts))


def changed_since(store: Store) -> list[str]:
    """Return how the live policy in this version of tipbench differs from what was promoted; empty if it doesn't."""
    acts = store.promotions.history()
    if not acts or name_of(acts[-1].to) not in SERVED:
        return []
    try:
        now = arm_data(arm(acts[-1].to, store.priors.read))
    except TipbenchError as error:
        return [f"it can't be served: {error}"]
    return _arm_differences(acts[-1].to, acts[-1].candidate, now)


def fitting_gate(newest_first: Sequence[GateRecord], wanted: GateRequirement) -> GateRecord:
    """Return the newest gate that meets the requirement; raise PromotionRefused if there is none or it did not pass."""
    name = wanted.name
    if not newest_first:
        raise PromotionRefused(f"no gate has been run for {name} yet; run one: {wanted.command}")
    fitting = next((gate for gate in newest_first if not differences(gate, wanted)), None)
    if fitting is None:
        newest = newest_first[0]
        raise PromotionRefused(
            f"the gate {newest.id} does not count here: {'; '.join(differences(newest, wanted))}. "
            f"Run another: {wanted.command}"
        )
    if not fitting.verdict.passed:
        failed = [f"{one.name}: {one.reason}" for one in fitting.verdict.conditions if not one.passed]
        raise PromotionRefused(
            f"the gate {fitting.id} was not passed ({printable('; '.join(failed), 600)}); {name} may go live once it "
            f"passes: {wanted.command}"
        )
    return fitting


def differences(gate: GateRecord, wanted: GateRequirement) -> list[str]:
    """Return how a gate differs from the requirement; empty if it meets it."""
    candidate, incumbent, *others = wanted.arms
    found = [*_candidate_differences(gate.candidate, candidate), *_incumbent_differences(gate.incumbent, incumbent)]
    if not found:
        found = _other_differences(gate.plan.arms[2:], others)
    simulator, world = wanted.world.simulator, gate.plan.world
    if gate.plan.simulator != simulator:
        found.append(f"it was run with version {gate.plan.simulator} of the simulator, but this is {simulator}")
    if world.digest != wanted.world.digest:
        found.append(
            f"it was run in the world {shown(world.name)} ({world.digest[:12]}), and wanted is "
            f"{shown(wanted.world.name)} ({wanted.world.digest[:12]})"
        )
    plan = gate.plan
    found += size_problems(plan.seeds.first, plan.seeds.count, plan.steps, plan.offered)
    laxer = [name for name, value in asdict(RULES).items() if not _as_strict(name, gate.rules.get(name), value)]
    found += [f"its rule {name} was {shown(gate.rules.get(name))}, but is {asdict(RULES)[name]} now" for name in laxer]
    return found


def size_problems(first_seed: int, seeds: int, steps: int, offered: int) -> list[str]:
    """Return why a gate of this size and on these seeds does not count; empty if it does.

    It must be at least as large as the default size, whose error rates are known, and not use the seeds on which the
    thresholds were tuned.
    """
    sizes = (
        (seeds, DEFAULT_SIZE.seeds, "seeds"),
        (steps, DEFAULT_SIZE.steps, "decisions per life"),
        (offered, DEFAULT_SIZE.offered, "tips to choose from"),
    )
    found = [f"it had {size} {of_what}, and {least} are required" for size, least, of_what in sizes if size < least]
    if first_seed < FIRST_SEED:
        found.append(f"its seeds count from {first_seed}, and those below {FIRST_SEED} set the thresholds")
    return found


def last_replay(newest_first: Sequence[ReplayRecord], candidate: Mapping[str, Any]) -> ReplayRecord | None:
    """Return the newest decisive replay of this candidate, if any; raise PromotionRefused if it speaks against it."""
    decisive = (
        replay
        for replay in newest_first
        if replay.candidate == candidate and replay.verdict.status in ("passed", "failed")
    )
    replay = next(decisive, None)
    if replay and replay.verdict.status == "failed":
        raise PromotionRefused(
            f"the replay {replay.id} of the decision log speaks against {candidate['name']}: "
            f"{printable(replay.verdict.reason, 300)}. Replay it again once more has been served: "
            f"{shlex.join(('tipbench', 'sim', 'replay', '--candidate', candidate['name']))}"
        )
    return replay


def _gates(home: Path, gate_id: str | None, wanted: GateRequirement) -> list[GateRecord]:
    """Return the named gate, or else all gates of this candidate."""
    if gate_id is None:
        return [gate for gate in gate_records(home).newest_first() if gate.candidate.get("name") == wanted.name]
    try:
        return [gate_records(home).read(gate_id)]
    except NotFound as error:
        raise PromotionRefused(f"{error}; run a gate: {wanted.command}") from error


def _check_clock(gates: Sequence[GateRecord], at_ms: int) -> None:
    """Raise PromotionRefused if a gate's time is in the future: the newest could not be determined."""
    ahead = next((gate for gate in gates if gate.made_ms > at_ms + _CLOCKS_DIFFER_MS), None)
    if ahead:
        raise PromotionRefused(
            f"the gate {ahead.id} was run {(ahead.made_ms - at_ms) / 60_000:,.0f} minutes in the future, according "
            "to its record; correct this machine's clock, or remove the record from recommender/gates in TIPBENCH_HOME"
        )


def _live_arm(live: str, store: Store) -> Arm:
    if name_of(live) not in SERVED:
        raise StateRefused(
            f"{shown(live)} is live, but this version of tipbench does not know it; install the version that "
            "promoted it, or roll it back: tipbench recommend rollback"
        )
    return arm(live, store.priors.read)


def _candidate_differences(recorded: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    if recorded.get("name") != wanted["name"]:
        return [f"it was run for {shown(recorded.get('name'))}, not for {wanted['name']}"]
    return _arm_differences("the candidate", recorded, wanted)


def _incumbent_differences(recorded: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    if recorded.get("name") != wanted["name"]:
        return [f"it was run against {shown(recorded.get('name'))}, and {wanted['name']} is live now"]
    return _arm_differences("the incumbent", recorded, wanted)


def _other_differences(recorded: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the differences in the baselines, and in the arms that must fail."""
    by_name = {one.get("name"): one for one in recorded}
    return [
        problem
        for one in wanted
        for problem in (
            _arm_differences(one["name"], by_name[one["name"]], one)
            if one["name"] in by_name
            else [f"it was run without {one['name']}"]
        )
    ]


def _arm_differences(who: str, recorded: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Return the differences between two arms, parameter by parameter."""
    then, now = _flat(recorded), _flat(wanted)
    return [
        f"{who}'s {name} was {shown(then.get(name))}, but is {shown(now.get(name))} now"
        for name in sorted({*then, *now})
        if then.get(name) != now.get(name)
    ]


def _flat(arm: Mapping[str, Any]) -> dict[str, Any]:
    parameters = arm.get("parameters")
    rest = {name.replace("_", " "): value for name, value in arm.items() if name != "parameters"}
    return rest | (parameters if isinstance(parameters, dict) else {"parameters": parameters})


def _as_strict(name: str, then: float | None, now: float) -> bool:
    """Return whether a rule was at least as strict as now; one without a known direction must be equal."""
    if then is None:
        return False
    if name in _MORE_IS_STRICTER:
        return then >= now
    return then <= now if name in _LESS_IS_STRICTER else then == now
