"""Gates that were held are listed and shown; one that was edited is told, and hides no other."""

import os
from pathlib import Path

import pytest

from tests.recommender.gates import held_gate
from tests.server.views.made_recommender import a_gate
from tipbench.core.errors import InvalidInput, NotFound, StateDamaged, StateRefused
from tipbench.core.paths import gates_folder
from tipbench.server.views.gates import Gates


def test_no_gates_are_no_lines(tmp_path: Path) -> None:
    assert Gates(tmp_path).lines() == []


def test_the_newest_is_the_first(tmp_path: Path) -> None:
    gates = Gates(tmp_path)
    first = a_gate(tmp_path, passed=False)
    assert [line.id for line in gates.lines()] == [first]
    second = a_gate(tmp_path, candidate="linucb")
    newest, oldest = gates.lines()
    assert (newest.id, newest.candidate, newest.incumbent, newest.passed) == (second, "linucb", "egreedy", True)
    assert (oldest.id, oldest.passed, oldest.failed) == (first, False, ("gains overall",))
    assert (newest.gain, newest.lower_bound) == (0.1, 0.08)
    assert (newest.seeds, newest.steps) == (30, 300)


def test_one_that_was_edited_is_told_and_hides_no_other(tmp_path: Path) -> None:
    gates = Gates(tmp_path)
    edited, whole = a_gate(tmp_path, passed=False), a_gate(tmp_path)
    assert not any(line.problem for line in gates.lines())
    path = gates_folder(tmp_path) / f"{edited}.json"
    path.write_text(path.read_text("utf-8").replace('"passed": false', '"passed": true '))
    os.utime(path, ns=(1, 1))
    fine, wrong = gates.lines()
    assert (fine.id, fine.problem) == (whole, "")
    assert (wrong.id, wrong.passed) == (edited, False)
    assert "was changed after it was written, so it can't be trusted" in wrong.problem
    with pytest.raises(StateDamaged, match="can't be trusted"):
        gates.gate(edited)
    path.unlink()
    assert [line.id for line in gates.lines()] == [whole]


def test_one_that_is_removed_while_they_are_listed_hides_no_other(tmp_path: Path) -> None:
    whole = a_gate(tmp_path)
    (gates_folder(tmp_path) / "0123456789abcdef.json").symlink_to(tmp_path / "gone")
    assert [line.id for line in Gates(tmp_path).lines()] == [whole]


def test_one_whose_policies_have_no_names_hides_no_other(tmp_path: Path) -> None:
    nameless, whole = held_gate(tmp_path, change=lambda result: result["plan"]["arms"][0].pop("name")), a_gate(tmp_path)
    assert {line.id for line in Gates(tmp_path).lines()} == {nameless, whole}


def test_a_gate_with_all_that_it_found(tmp_path: Path) -> None:
    gates = Gates(tmp_path)
    found = gates.gate(a_gate(tmp_path))
    assert (found.candidate_name, found.incumbent_name, found.verdict.passed) == ("egreedy/v2", "egreedy", True)
    assert [one.persona for one in found.verdict.personas] == ["planner", "chaotic"]
    assert found.outcome.policies == list(found.verdict.roles)
    assert found.verdict.role("most-popular", 3) == "baseline"
    assert gates.data(found.id)["verdict"]["passed"] is True


def test_a_gate_from_before_version_3_is_read(tmp_path: Path) -> None:
    found = Gates(tmp_path).gate(a_gate(tmp_path, older=True))
    assert (found.verdict.says, found.verdict.scorecard) == ("", None)
    roles = [found.verdict.role(name, number) for number, name in enumerate(found.outcome.policies)]
    assert roles == ["candidate", "incumbent", "must fail", "must fail"]


def test_what_is_not_there_or_no_id_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no gate 0123456789abcdef"):
        Gates(tmp_path).gate("0123456789abcdef")
    with pytest.raises(InvalidInput, match="is not a record id"):
        Gates(tmp_path).gate("../promotions")


def test_a_record_without_its_outcome_is_listed_and_can_not_be_shown(tmp_path: Path) -> None:
    kept = held_gate(tmp_path)
    assert [line.problem for line in Gates(tmp_path).lines()] == [""]
    with pytest.raises(StateRefused, match="in a format that this version of tipbench does not know"):
        Gates(tmp_path).gate(kept)
