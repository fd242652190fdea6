"""Worlds from files: the built-in one, and whatever somebody writes."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.recommender.simulation.worlds import (
    LIKES_INBOX,
    MOODY,
    POOL,
    a_persona,
    a_world,
    a_world_of_version_3,
)
from tipbench.core.errors import InvalidInput
from tipbench.recommender.simulation.world import World, load_world
from tipbench.server.jobs.simulation_asked import built_in_world, world_file

GOOD = yaml.safe_load(world_file(2).read_text(encoding="utf-8"))
SMALL = a_world().model_dump(mode="json")
NEW = a_world_of_version_3().model_dump(mode="json")
KEYS = (
    "late",
    "spread",
    "quality",
    "profile_features",
    "name",
    "categories",
    "pool",
    "personas",
    "about",
    "base",
    "taste",
    "wakes",
    "sleeps",
    "control",
    "moods",
)


def _written(folder: Path, data: Any) -> Path:
    path = folder / "world.yaml"
    path.write_text(data if isinstance(data, str) else yaml.safe_dump(data), encoding="utf-8")
    return path


@pytest.mark.parametrize("version", [2, 3])
def test_the_built_in_worlds_have_what_was_promised(version: int) -> None:
    world = built_in_world(version)
    assert world.simulator == version
    assert [persona.name for persona in world.personas] == [persona.name for persona in built_in_world(2).personas]
    assert len([persona for persona in world.personas if not persona.control]) >= 8
    assert {"indifferent", "chaotic"} <= {persona.name for persona in world.personas if persona.control}
    assert [persona.name for persona in world.personas if persona.taste_after is not None] == ["switcher"]
    assert any(persona.fatigue for persona in world.personas)


def test_the_built_in_world_of_version_3_uses_all_there_is() -> None:
    world = built_in_world()
    assert (world.pool.quality, world.feedback) != (None, None)
    assert all(persona.spread for persona in world.personas)
    served = [persona for persona in world.personas if not persona.control]
    assert all(persona.quality_weight and persona.fatigue for persona in served)
    assert sum(bool(persona.drift) for persona in served) >= 6
    assert sum(persona.profile_features is not None for persona in served) >= 6


def test_a_digest_is_of_the_content(tmp_path: Path) -> None:
    again = load_world(_written(tmp_path, GOOD))
    assert again.digest == built_in_world(2).digest
    assert again.digest == "e454180b79a064a9d41ce10555205284dbba04011021f4280b6795f54ec47ca1"  # as before version 3
    assert a_world(LIKES_INBOX).digest != a_world(LIKES_INBOX.model_copy(update={"base": -1.1})).digest
    assert World.model_validate(again.model_dump(mode="json")).digest == again.digest


def test_some_of_the_personas() -> None:
    world = a_world(LIKES_INBOX, MOODY)
    assert world.only(["moody"]).personas == (MOODY,)
    with pytest.raises(InvalidInput, match="no persona 'nobody'; there are likes-inbox, moody"):
        world.only(["nobody"])
    with pytest.raises(InvalidInput, match="each persona once; given: moody, moody"):
        world.only(["moody", "moody"])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"categories": ["inbox"]}, "categories"),
        ({"personas": []}, "personas"),
        ({"personas": [{"name": "A b", "about": "", "base": 0}]}, r"personas\.0\.name"),
        ({"personas": [{"name": "a", "about": "", "base": 99}]}, r"personas\.0\.base"),
        ({"personas": [{"name": "a", "about": "", "base": float("nan")}]}, r"personas\.0\.base"),
        ({"personas": [{"name": "a", "about": "", "base": 0, "tastes": {}}]}, r"personas\.0\.tastes"),
        ({"personas": [{"name": "a", "about": "", "base": True}]}, r"personas\.0\.base"),
        ({"personas": [{"name": "a", "about": "", "base": "3"}]}, r"personas\.0\.base"),
        ({"pool": {**POOL, "tips_per_category": 0}}, r"pool\.tips_per_category"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=rf"world\.yaml is not a valid world: line \d+: .*{told}"):
        load_world(_written(tmp_path, {**GOOD, **changes}))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"categories": ["inbox", "inbox"], "personas": [{"name": "a", "about": "", "base": 0}]}, "two categories"),
        (
            {"personas": [{"name": "a", "about": "", "base": 0, "taste": {"work": 1}}]},
            "a names work, which is not a category",
        ),
        ({"personas": [{"name": "a", "about": "", "base": 0, "wakes": 9, "sleeps": 8}]}, "a sleeps before waking"),
        ({"personas": [{"name": "a", "about": "", "base": 0}] * 2}, "two personas have the same name"),
        ({"pool": {**POOL, "shortest": 500}}, "the shortest tip has 500 characters, the longest 400"),
        *(
            (
                {"personas": [{"name": "a", "about": "", "base": 0, "control": True, **cares}]},
                "a is a control, so it must not care",
            )
            for cares in ({"taste": {"inbox": 1}}, {"taste_after": {"inbox": 1}}, {"fatigue": 1}, {"focus_weight": -1})
        ),
    ],
)
def test_what_does_not_fit_together_is_told(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=rf"world\.yaml is not a valid world: {told}"):
        load_world(_written(tmp_path, {**GOOD, **changes}))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"simulator": 4}, r"line \d+: simulator: "),
        ({"simulator": 2}, "feedback needs version 3 of the simulator; add simulator: 3"),
        ({"simulator": 2, "feedback": None}, "dwell needs version 3"),
        ({"feedback": {"late": 0.6, "mean_delay_h": 1, "missing": 0.5}}, "the shares of late and of missing rewards"),
        ({"feedback": {"late": 0.1, "mean_delay_h": 0, "missing": 0}}, r"line \d+: feedback\.mean_delay_h: "),
        ({"pool": {**POOL, "quality": {"judged": 1.1, "correlation": 0}}}, r"line \d+: pool\.quality\.judged: "),
        *(
            ({"personas": [{"name": "a", "about": "", "base": 0, "control": True, **cares}]}, "a is a control")
            for cares in ({"spread": {"taste": 1}}, {"spread": {"weights": 1}}, {"drift": 1}, {"quality_weight": 1})
        ),
        (
            {"personas": [{"name": "a", "about": "", "base": 0, "profile_features": {"completion_rate": 2}}]},
            r"line \d+: personas\.0\.profile_features\.completion_rate: ",
        ),
        (
            {"personas": [{"name": "a", "about": "", "base": 0, "profile_features": {"categories": {"work": {}}}}]},
            "a names work, which is not a category",
        ),
    ],
)
def test_what_does_not_fit_version_3_is_told(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=rf"world\.yaml is not a valid world: {told}"):
        load_world(_written(tmp_path, {**NEW, **changes}))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it needs the keys name, categories, pool, personas"),
        ("[1, 2", "not valid YAML"),
        ("[" * 500, "not valid YAML"),
        ("name: 2024-99-99", "line 1"),
        ("!!python/object/apply:os.system ['true']", "it needs the keys"),
        ("{a: 1, a: 2}", "is given twice"),
    ],
)
def test_what_is_no_world_at_all(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=f"is not a valid world: .*{told}"):
        load_world(_written(tmp_path, text))


def test_a_file_that_can_not_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="can't be read: No such file"):
        load_world(tmp_path / "none.yaml")
    with pytest.raises(InvalidInput, match="can't be read: it is not a regular file"):
        load_world(tmp_path)
    (tmp_path / "latin").write_bytes(b"name: \xff")
    with pytest.raises(InvalidInput, match="not UTF-8"):
        load_world(tmp_path / "latin")


_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.dates()
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=8,
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.sampled_from(["", *SMALL, *NEW, "a persona", "its taste", "its spread"]), value=_VALUES)
def test_any_value_anywhere_is_taken_or_refused_in_one_sentence(tmp_path: Path, place: str, value: Any) -> None:
    data: Any = {**NEW, place: value} if place in NEW else value
    if place == "a persona":
        data = {**SMALL, "personas": [value]}
    elif place.startswith("its "):
        data = {**NEW, "personas": [{"name": "a", "about": "", "base": 0, place.removeprefix("its "): value}]}
    found = _loaded_or_refused(_written(tmp_path, data))
    if isinstance(found, World):
        assert load_world(_written(tmp_path, found.model_dump(mode="json"))) == found
    else:
        assert "\n" not in found


def _loaded_or_refused(path: Path) -> World | str:
    try:
        return load_world(path)
    except InvalidInput as refused:
        return str(refused)


def test_a_name_of_a_persona_can_be_part_of_a_users_id() -> None:
    assert a_persona("a" * 40).name == "a" * 40
