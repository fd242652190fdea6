"""The built-in pool: many scenarios, each of another persona and unlike the others; and scenarios of few personas."""

import re
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

from tipbench.bench.records import Scenario
from tipbench.bench.suites.load import built_in_prefixes, built_in_suites, categories_of, load_suite, pool_of
from tipbench.bench.suites.suite import Suite
from tipbench.core.errors import InvalidInput
from tipbench.core.settings import Settings

MOST_ALIKE = 0.08  # share of common runs of three words


@pytest.fixture(scope="module")
def pool() -> Suite:
    return load_suite("tip-pool")


@pytest.fixture(scope="module")
def tip() -> Suite:
    return load_suite("tip")


def test_every_scenario_is_of_another_persona(pool: Suite) -> None:
    assert len(pool.scenarios) >= 160
    assert len({one.factors["persona"] for one in pool.scenarios}) == len(pool.scenarios)
    assert {one.cluster for one in pool.scenarios} == {"persona"}
    names = [one.variables["persona"]["name"] for one in pool.scenarios]
    assert len(set(names)) == len(names)
    slots = Counter(one.factors["time_slot"] for one in pool.scenarios)
    assert slots.keys() == {"morning", "midday", "evening", "night"}
    assert min(slots.values()) >= 10


def test_each_is_as_rich_as_those_of_tip(pool: Suite, tip: Suite) -> None:
    shortest = min(len(one.text) for one in tip.scenarios)
    for one in pool.scenarios:
        assert 3 <= len(one.variables["tasks"]) <= 5, one.id
        assert 0.75 * shortest <= len(one.text) <= 1_200, one.id
        for task in one.variables["tasks"]:
            assert all(str(task[key]).strip() for key in ("title", "due", "effort", "people", "note")), one.id


def runs_of_words(one: Scenario) -> frozenset[tuple[str, ...]]:
    """Runs of three words of what is the scenario's own, without the template around it."""
    persona = one.variables["persona"]
    own = [persona[key] for key in ("role", "about", "works_best", "avoids")]
    own += [one.variables[key] for key in ("energy", "next_fixed", "constraint")]
    own += [str(value) for task in one.variables["tasks"] for value in task.values()]
    found: set[tuple[str, ...]] = set()
    for text in own:
        words = re.findall(r"\w+", text.casefold())
        found |= set(zip(words, words[1:], words[2:], strict=False))
    return frozenset(found)


def test_no_two_are_alike(pool: Suite, tip: Suite) -> None:
    words = {one.id: runs_of_words(one) for one in (*pool.scenarios, *tip.scenarios[::2])}
    nearness = {(a, b): len(words[a] & words[b]) / len(words[a] | words[b]) for a, b in combinations(words, 2)}
    nearest = max(nearness, key=lambda pair: nearness[pair])
    assert nearness[nearest] < MOST_ALIKE, nearest


def test_rubric_and_prompts_are_those_of_tip(pool: Suite, tip: Suite) -> None:
    assert pool.rubric.digest == tip.rubric.digest
    assert {name: one.digest for name, one in pool.prompts.items()} == {
        name: one.digest for name, one in tip.prompts.items()
    }


def test_forty_anchors_use_the_whole_scale(pool: Suite, tip: Suite) -> None:
    assert len(pool.anchors) == 40
    assert len({one.scenario for one in pool.anchors}) == 40
    assert not {one.candidate for one in pool.anchors} & {one.candidate for one in tip.anchors}
    for name in pool.rubric.criteria:
        levels = Counter(one.scores[name] for one in pool.anchors)
        assert min(levels[level] for level in range(1, 6)) >= 5, name


def test_few_scenarios_are_of_different_personas(tip: Suite, pool: Suite) -> None:
    assert [one.factors["persona"] for one in tip.first_scenarios(4)] == [
        "electrician", "translator", "ward-lead", "payroll-clerk",
    ]  # fmt: skip
    assert len({one.factors["persona"] for one in tip.first_scenarios(6)}) == 4
    assert tip.first_scenarios(0) == tip.first_scenarios(8) == tip.scenarios
    assert pool.first_scenarios(5) == pool.scenarios[:5]
    with pytest.raises(InvalidInput, match="--n-scenarios 9 is more than suite 'tip' has: 8"):
        tip.first_scenarios(9)


def test_prefixes_are_known_without_loading_suites() -> None:
    assert built_in_prefixes() == tuple(load_suite(name).experiment_prefix for name in built_in_suites())


def test_it_is_found_by_the_rubric_that_it_shares() -> None:
    assert pool_of(load_suite("tip").rubric.digest) == "tip-pool"
    assert pool_of("another") is None


def test_it_has_the_categories_of_the_suite_that_it_is_based_on(tmp_path: Path) -> None:
    own = built_in_suites()["tip"] / "categories.yaml"
    assert categories_of("tip-pool", Settings({})) == categories_of("tip", Settings({})) == own
    assert categories_of(str(tmp_path), Settings({})) is None
