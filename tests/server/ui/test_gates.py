"""A gate's page: the verdict first, then every reason, and how its candidate goes live."""

from pathlib import Path

import pytest

from tests.server.ui.visits import page_at, visit
from tests.server.views.made_recommender import a_gate, made_room, record
from tipbench.core.errors import NotFound
from tipbench.core.settings import Settings
from tipbench.server.ui import urls
from tipbench.server.ui.gates import reasons_of


def test_a_gate_that_was_passed_says_how_to_go_live(home: Path) -> None:
    kept = a_gate(home)
    page = page_at(visit(), urls.gate(kept))
    (verdict,) = page.all("section", "verdict")
    assert verdict.words.startswith(
        "Passed It may go live. Over all personas it gains +0.1000 in reward per decision, at least +0.0800"
    )
    assert f"tipbench recommend promote egreedy/v2 --gate {kept}" in verdict.words
    assert "no longer allows it to go live" not in verdict.words
    assert "Met: gains overall: it gains what it gains." in page.words
    assert "Does the gate itself work? Met: egreedy, again fails: the incumbent itself fails, as it must." in page.words
    assert "seeds 10000 to 10029: 30 lives per persona" in page.words
    assert "no persona’s and no stage’s lower bound may be below minus" in page.words
    assert "most-popular baseline 0.250 ±0.010 0.300 ±0.020" in page.words
    assert len(list(page.all("svg", "curves"))) == 2, "a plot a persona"


def test_one_that_lets_nobody_go_live_any_more_says_why(home: Path) -> None:
    kept = a_gate(home)
    record(Settings(), "promote", "egreedy", "egreedy/v2", kept)
    (verdict,) = page_at(visit(), urls.gate(kept)).all("section", "verdict")
    assert "This gate no longer allows it to go live: egreedy/v2 is live already" in verdict.words
    assert "tipbench recommend promote" not in verdict.words


def test_a_world_of_ones_own_has_to_be_named(home: Path) -> None:
    kept = a_gate(home, world="0" * 64)
    (verdict,) = page_at(visit(), urls.gate(kept)).all("section", "verdict")
    assert "It was run in a world of your own: name its file with --world." in verdict.words
    assert f"tipbench recommend promote egreedy/v2 --gate {kept} --world FILE" in verdict.words


def test_its_verdict_is_shown_when_the_store_of_states_can_not_be_opened(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = a_gate(home)
    monkeypatch.setenv("TIPBENCH_STATE", "parchment")
    (verdict,) = page_at(visit(), urls.gate(kept)).all("section", "verdict")
    assert verdict.words.startswith("Passed ")
    assert "This gate no longer allows it to go live: there is no store 'parchment' for states" in verdict.words


def test_one_that_was_not_passed_changes_nothing(home: Path) -> None:
    page = page_at(visit(), urls.gate(a_gate(home, passed=False)))
    (verdict,) = page.all("section", "verdict")
    assert verdict.words.startswith("Not passed ")
    assert "Nothing changes: only a policy that passes its gate goes live." in verdict.words
    assert "promote" not in verdict.words
    assert "Not met: gains overall" in page.words


def test_the_list_tells_verdicts_and_what_was_changed(home: Path) -> None:
    kept, edited = a_gate(home, passed=False), a_gate(home)
    path = home / "recommender" / "gates" / f"{edited}.json"
    path.write_text(path.read_text("utf-8").replace("egreedy", "nobody"), "utf-8")
    page = page_at(visit(), urls.GATES)
    first, second = [row.words for row in next(page.all("tbody")).all("tr")]
    assert first.startswith("egreedy/v2 against egreedy")
    assert "not passed +0.1000 +0.0800 gains overall 30 × 300" in first
    assert second.startswith(edited)
    assert "so it can't be trusted" in second
    assert urls.gate(kept) in [node.attributes.get("href") for node in page.all("a")]


def test_reasons_on_the_candidate_are_apart_from_those_on_the_gate(home: Path) -> None:
    reasons = reasons_of(made_room().gates.gate(a_gate(home)))
    assert [one.name for one in reasons.candidate] == ["gains overall"]
    assert [one.name for one in reasons.checks] == ["egreedy, again fails"]


def test_one_from_before_version_3_is_shown_without_a_scorecard(home: Path) -> None:
    page = page_at(visit(), urls.gate(a_gate(home, older=True)))
    assert "Scorecard" not in page.words
    assert "Does the gate itself work? Met: egreedy, again fails" in page.words


def test_one_that_is_not_there_is_not_made_up(home: Path) -> None:
    with pytest.raises(NotFound):
        visit().get(urls.gate("0123456789abcdef"))
