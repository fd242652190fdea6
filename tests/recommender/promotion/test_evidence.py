"""Who may go live: only by a gate for exactly this, and every refusal says what is another."""

import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from tests.recommender.gates import BACK, HELD, LINUCB, V2, Change, held_gate, held_replay, promoted
from tests.recommender.prior.priors import prior_content
from tipbench.core.errors import Conflict, NotFound, StateDamaged, StateRefused
from tipbench.recommender.promotion import evidence as promoting
from tipbench.recommender.promotion.evidence import (
    ApprovedAct,
    GateSearch,
    PromotionRefused,
    changed_since,
    promotion,
    rollback,
)
from tipbench.recommender.promotion.files import FilePromotions
from tipbench.recommender.promotion.gate_records import gate_records
from tipbench.recommender.simulation import gate
from tipbench.recommender.simulation.gate import Rules
from tipbench.recommender.store.files import FileStore
from tipbench.server.jobs.simulation_asked import built_in_world, open_world, world_file

AT_MS = (HELD + 10**6) * 1000
HOLD = "tipbench sim gate --candidate egreedy/v2 --incumbent egreedy"


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "state", durable=False)


@pytest.fixture
def promotions(store: FileStore) -> FilePromotions:
    return store.promotions


@pytest.fixture
def promote(store: FileStore, home: Path) -> Callable[..., ApprovedAct]:
    def decide(policy: str = "egreedy/v2", world: Path | None = None, gate_id: str | None = None) -> ApprovedAct:
        return promotion(policy, store, GateSearch(home, open_world(world), world, gate_id), AT_MS)

    return decide


Promote = Callable[..., ApprovedAct]


def test_a_passed_gate_for_exactly_this_lets_it_go_live(promote: Promote, home: Path) -> None:
    name = held_gate(home)
    decided = promote()
    assert decided.act == V2.model_copy(update={"at_ms": AT_MS, "gate": name})
    assert decided.known == 0
    assert decided.gate
    assert decided.gate.id == name


def test_a_gate_that_was_held_after_now_leaves_the_newest_unknown(store: FileStore, home: Path) -> None:
    held_gate(home)
    name = held_gate(home, passed=False)
    made_ms = gate_records(home).read(name).made_ms
    with pytest.raises(
        PromotionRefused, match=f"the gate {name} was run 3 minutes in the future, according to its record; correct"
    ):
        promotion("egreedy/v2", store, GateSearch(home, built_in_world()), made_ms - 180_000)


def test_without_a_gate_it_is_refused_with_the_command_to_hold_one(promote: Promote, home: Path) -> None:
    held_gate(home, "linucb")
    with pytest.raises(PromotionRefused, match=f"no gate has been run for egreedy/v2 yet; run one: {HOLD}$"):
        promote()


def _set(*place: Any, to: Any) -> Change:
    *path, last = place

    def change(result: dict[str, Any]) -> None:
        part: Any = result
        for step in path:
            part = part[step]
        part[last] = to

    return change


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            _set("plan", "arms", 0, "feature_version", to="v1"),
            "the candidate's feature version was 'v1', but is 'v2' now",
        ),
        (
            _set("plan", "arms", 0, "parameters", "epsilon_floor", to=0.2),
            "the candidate's epsilon_floor was 0.2, but is 0.05 now",
        ),
        (
            _set("plan", "arms", 0, "parameters", "alpha", to=1.0),
            "the candidate's alpha was 1.0, but is None now",
        ),
        (_set("plan", "arms", 0, "parameters", to=None), "the candidate's ridge was None, but is 1.0 now"),
        (_set("plan", "arms", 0, "told", to="flat"), "the candidate's told was 'flat', but is 'by-category' now"),
        (_set("plan", "arms", 1, "name", to="linucb"), "it was run against 'linucb', and egreedy is live now"),
        (
            _set("plan", "arms", 1, "parameters", "epsilon_first", to=1.0),
            "the incumbent's epsilon_first was 1.0, but is 0.3 now",
        ),
        (_set("plan", "arms", 2, "name", to="another"), "it was run without category-mean"),
        (
            _set("plan", "arms", 3, "parameters", "counted_lives", to=1),
            "most-popular's counted_lives was 1, but is 10 now",
        ),
        (_set("plan", "simulator", to=0), "it was run with version 0 of the simulator, but this is"),
        (
            _set("plan", "world", to={"name": "easy", "digest": "0" * 64}),
            "it was run in the world 'easy' (000000000000), and wanted is 'tips' (",
        ),
    ],
)
def test_a_gate_for_something_else_is_refused_with_what_is_another(
    promote: Promote, home: Path, change: Change, told: str
) -> None:
    name = held_gate(home, change=change)
    for asked in (None, name):
        with pytest.raises(PromotionRefused, match=re.escape(told)) as refused:
            promote(gate_id=asked)
        assert str(refused.value).startswith(f"the gate {name} does not count here: ")
        assert str(refused.value).endswith(f"Run another: {HOLD}")


@pytest.mark.parametrize(
    ("rule", "laxer", "stricter"),
    [
        *(("least_gain", 0.5, 2), ("least_wins", 0.5, 1.2), ("worst_loss", 2, 0.5), ("level", 0.9, 1.01)),
        *(("least_prior_gain", 0.5, 2), ("worst_prior_loss", 2, 0.5)),
    ],
)
def test_rules_have_to_be_as_strict_as_todays(
    promote: Promote, home: Path, monkeypatch: pytest.MonkeyPatch, rule: str, laxer: float, stricter: float
) -> None:
    of_today = getattr(gate.RULES, rule)
    for factor in (stricter, laxer):
        monkeypatch.setattr("tipbench.recommender.promotion.gate_records.RULES", Rules(**{rule: of_today * factor}))
        name = held_gate(home)
        if factor == stricter:
            assert promote(gate_id=name).act.gate == name
        else:
            with pytest.raises(PromotionRefused, match=f"its rule {rule} was {of_today * factor}, but is {of_today}"):
                promote(gate_id=name)


@pytest.mark.parametrize(
    ("place", "value", "told"),
    [
        (("plan", "seeds", "count"), 10, "it had 10 seeds, and 30 are required"),
        (("plan", "steps"), 199, "it had 199 decisions per life, and 200 are required"),
        (("plan", "offered"), 2, "it had 2 tips to choose from, and 10 are required"),
        (("plan", "seeds", "first"), 9_999, "its seeds count from 9999, and those below 10000 set the thresholds"),
    ],
)
def test_a_gate_has_to_be_large_enough_and_on_seeds_that_set_no_threshold(
    promote: Promote, home: Path, place: tuple[str, ...], value: int, told: str
) -> None:
    held_gate(home, change=_set(*place, to=value))
    with pytest.raises(PromotionRefused, match=told):
        promote()


def test_a_gate_of_another_candidate_is_told_by_its_name_alone(promote: Promote, home: Path) -> None:
    name = held_gate(home, "linucb")
    told = f"^the gate {name} does not count here: it was run for 'linucb', not for egreedy/v2. Run another: {HOLD}$"
    with pytest.raises(PromotionRefused, match=told):
        promote(gate_id=name)


def test_the_direction_of_every_rule_is_known() -> None:
    assert {field.name for field in fields(Rules)} == {*promoting._MORE_IS_STRICTER, *promoting._LESS_IS_STRICTER}


def test_a_gate_that_was_not_passed_is_refused_with_its_reason(promote: Promote, home: Path) -> None:
    name = held_gate(home, passed=False)
    with pytest.raises(PromotionRefused, match=rf"{name} was not passed \(gains overall: it gains.*passes: {HOLD}$"):
        promote()


def test_the_newest_gate_for_exactly_this_counts(promote: Promote, home: Path) -> None:
    first, second = held_gate(home), held_gate(home)
    held_gate(home, change=_set("plan", "simulator", to=0))
    held_gate(home, incumbent="linucb")
    assert promote().act.gate == second
    assert promote(gate_id=first).act.gate == first
    failed = held_gate(home, passed=False)
    with pytest.raises(PromotionRefused, match=f"gate {failed} was not passed"):
        promote()


def test_another_world_has_to_be_named(promote: Promote, home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other world.yaml"
    other.write_text(world_file().read_text(encoding="utf-8").replace("name: tips", "name: others"), encoding="utf-8")
    held_gate(home)
    with pytest.raises(PromotionRefused, match=rf"wanted is 'others' .*Run another: {HOLD} --world '.*world\.yaml'$"):
        promote(world=other)
    assert promote(world=world_file()).act.to == "egreedy/v2"


@pytest.mark.parametrize("gate_id", ["0123456789abcdef"])
def test_a_gate_that_is_not_there(promote: Promote, gate_id: str) -> None:
    with pytest.raises(PromotionRefused, match=f"there is no gate {gate_id}; run a gate: {HOLD}$"):
        promote(gate_id=gate_id)


def test_an_edited_gate_is_refused(promote: Promote, home: Path) -> None:
    name = held_gate(home, passed=False)
    path = home / "recommender" / "gates" / f"{name}.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"passed": false', '"passed": true'), encoding="utf-8")
    for asked in (None, name):
        with pytest.raises(StateDamaged, match="was changed after it was written, so it can't be trusted; remove it"):
            promote(gate_id=asked)


def test_a_replay_that_speaks_against_it_refuses(promote: Promote, home: Path) -> None:
    held_gate(home)
    held_replay(home, "failed", candidate="linucb")
    passed = held_replay(home, "passed")
    assert promote().act.replay == passed
    failed = held_replay(home, "failed")
    held_replay(home, "thin")
    held_replay(home, "undecided")
    told = f"the replay {failed} .* speaks against egreedy/v2: by DR .* tipbench sim replay --candidate egreedy/v2$"
    with pytest.raises(PromotionRefused, match=told):
        promote()
    again = held_replay(home, "passed")
    assert promote().act.replay == again


@pytest.mark.parametrize("status", ["thin", "undecided"])
def test_one_that_could_tell_nothing_does_not_count(promote: Promote, home: Path, status: str) -> None:
    held_gate(home)
    held_replay(home, status)
    assert promote().act.replay is None


def test_what_is_live_is_the_incumbent(promote: Promote, promotions: FilePromotions, home: Path) -> None:
    held_gate(home, "linucb", "egreedy")
    promotions.append(V2, 0)
    told = (
        "run against 'egreedy', and egreedy/v2 is live now. Run another: .* --candidate linucb --incumbent egreedy/v2$"
    )
    with pytest.raises(PromotionRefused, match=told):
        promote("linucb")
    name = held_gate(home, "linucb", "egreedy/v2")
    decided = promote("linucb")
    assert (decided.act.left, decided.act.gate, decided.known) == ("egreedy/v2", name, 1)


@pytest.mark.parametrize("policy", ["category-mean", "egreedy/v2-flat", "thompson", "\x1b[2J"])
def test_only_what_can_be_served_goes_live(promote: Promote, policy: str) -> None:
    with pytest.raises(NotFound, match="can be served; there are egreedy, egreedy/v2, linucb") as refused:
        promote(policy)
    assert "\x1b" not in str(refused.value)


def test_what_is_live_already(promote: Promote) -> None:
    with pytest.raises(Conflict, match="egreedy is live already"):
        promote("egreedy")


def test_a_prior_simulated_in_another_way_is_refused(promote: Promote, store: FileStore, home: Path) -> None:
    candidate = f"ucb/v3@{store.priors.put(prior_content())}"
    change = _set("plan", "arms", 0, "simulated_prior", "lives", to=1)
    held_gate(home, candidate, change=change, read_prior=store.priors.read)
    with pytest.raises(PromotionRefused, match=r"the candidate's simulated prior was \{'kind': 'fitted'"):
        promote(candidate)


def test_a_gate_from_before_the_baselines_is_read_and_refused(promote: Promote, home: Path) -> None:
    def as_it_was(result: dict[str, Any]) -> None:
        arms = result["plan"]["arms"]
        result["plan"]["arms"] = [*arms[:2], *arms[4:]]

    held_gate(home, change=as_it_was)
    with pytest.raises(PromotionRefused, match="it was run without category-mean; it was run without most-popular"):
        promote()


def test_rolling_back_twice_goes_further_back(store: FileStore, promotions: FilePromotions) -> None:
    promotions.append(V2, 0)
    promotions.append(LINUCB, 1)
    for left, to in (("linucb", "egreedy/v2"), ("egreedy/v2", "egreedy")):
        decided = rollback(store, 7)
        assert (decided.act.act, decided.act.left, decided.act.to) == ("rollback", left, to)
        assert decided.act.candidate["name"] == to
        promotions.append(decided.act, decided.known)
    with pytest.raises(Conflict, match="egreedy has been live from the start, so there is nothing to roll back"):
        rollback(store, 8)


def test_a_policy_that_nobody_here_knows_can_be_taken_back_and_not_beaten(
    promote: Promote, store: FileStore, promotions: FilePromotions
) -> None:
    promotions.append(V2.model_copy(update={"to": "egreedy/v9"}), 0)
    with pytest.raises(
        StateRefused, match=r"'egreedy/v9' is live, but this version of tipbench does not know it.*rollback"
    ):
        promote()
    assert rollback(store, 7).act.to == "egreedy"
    promotions.append(promoted("egreedy/v9", "linucb"), 1)
    with pytest.raises(StateRefused, match="'egreedy/v9' was live before, but this version of tipbench can't serve it"):
        rollback(store, 7)


def test_a_policy_that_has_changed_since_is_told(store: FileStore, promotions: FilePromotions) -> None:
    assert changed_since(store) == []
    for known, act in enumerate((V2, BACK)):
        promotions.append(act, known)
        assert changed_since(store) == []
    promotions.append(V2.model_copy(update={"candidate": {**V2.candidate, "feature_version": "v2-beta"}}), 2)
    assert changed_since(store) == ["egreedy/v2's feature version was 'v2-beta', but is 'v2' now"]


def test_another_prior_for_the_live_policy_is_another_candidate(
    promote: Promote, store: FileStore, promotions: FilePromotions, home: Path
) -> None:
    first, second = (f"ucb/v3@{store.priors.put(prior_content(noise=noise))}" for noise in (1.0, 2.0))

    held_gate(home, first, "egreedy", read_prior=store.priors.read)
    decided = promote(first)
    assert (decided.act.left, decided.act.to) == ("egreedy", first)
    assert decided.act.candidate["parameters"]["prior"] == first.partition("@")[2]
    promotions.append(decided.act, 0)
    assert changed_since(store) == []
    with pytest.raises(Conflict, match=f"{first} is live already"):
        promote(first)
    with pytest.raises(PromotionRefused, match=f"run one: .* --candidate {second} --incumbent {first}$"):
        promote(second)
    held_gate(home, second, first, read_prior=store.priors.read)
    promotions.append(promote(second).act, 1)
    assert rollback(store, 7).act.to == first


def test_a_prior_that_is_gone_is_said(store: FileStore, promotions: FilePromotions) -> None:
    gone = f"ucb/v3@{'0' * 16}"
    promotions.append(V2.model_copy(update={"to": gone}), 0)
    assert changed_since(store) == [f"it can't be served: {_no_prior(store)}"]
    promotions.append(promoted("egreedy/v2", "linucb").model_copy(update={"left": gone}), 1)
    with pytest.raises(NotFound, match="there is no prior 0000000000000000"):
        rollback(store, 7)


def _no_prior(store: FileStore) -> str:
    with pytest.raises(NotFound) as error:
        store.priors.read("0" * 16)
    return str(error.value)
