"""What is shown of a simulation, as wide as a terminal and without its colours elsewhere."""

from pathlib import Path

import pytest
from rich.console import Console

from tests.cli.sim.making import found, found_by_a_gate
from tipbench.cli.sim import gate_report, run_report
from tipbench.cli.sim.gate_report import Contest, show_gate
from tipbench.cli.sim.run_report import show_run

CONTEST = Contest("egreedy/v2", "egreedy", None)


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Console:
    made = Console(width=getattr(request, "param", 80), record=True, highlight=False, markup=False, force_terminal=True)
    for module in (run_report, gate_report):
        monkeypatch.setattr(module, "out", made)
    return made


def _lines(console: Console) -> list[str]:
    return console.export_text().splitlines()


@pytest.mark.parametrize(("console", "curve"), [(80, 8), (120, 30)], indirect=["console"])
def test_a_run_fits_into_the_terminal(console: Console, curve: int) -> None:
    show_run(found())
    lines = _lines(console)
    tables = [line for line in lines if "egreedy" in line]
    assert len(tables) == 6
    assert all(len(line.rstrip()) <= console.width for line in tables)
    assert "0.200 ±0.010" in tables[1]
    assert "60.0" in tables[1]
    assert len(tables[1].split()[-1]) >= curve
    assert "seeds 5–34, 300 decisions a life" in lines[0]
    assert sum("chaotic °" in line for line in lines) == 1


def test_one_seed_has_no_margin(console: Console) -> None:
    show_run(found(margin=None))
    assert "0.100 ±?" in console.export_text()


def test_a_verdict_comes_first_and_then_its_reasons(console: Console) -> None:
    show_gate(found_by_a_gate(), CONTEST, "0123456789abcdef")
    lines = _lines(console)
    assert lines[0] == "PASSED: egreedy/v2 against egreedy"
    assert "✓ gains overall: it earns so much more" in lines
    assert "✓ egreedy, again fails: it fails, as it must" in lines
    text = "\n".join(lines)
    assert "tipbench recommend promote egreedy/v2 --gate 0123456789abcdef" in text
    assert "specialist  +0.300    +0.200  yes" in text
    assert "chaotic     +0.000    +0.000  control" in text


def test_what_did_not_pass_changes_nothing(console: Console) -> None:
    show_gate(found_by_a_gate(passed=False), CONTEST, "0123456789abcdef")
    lines = _lines(console)
    assert lines[0] == "NOT PASSED: egreedy/v2 against egreedy"
    assert "✗ gains overall: it earns so much more" in lines
    assert "Nothing changes: egreedy stays where it is." in lines[-1]


def test_a_world_of_ones_own_is_named_again(console: Console) -> None:
    show_gate(found_by_a_gate(), CONTEST._replace(world=Path("my world.yaml")), "0123456789abcdef")
    assert "--world 'my world.yaml'" in console.export_text()


def test_without_a_terminal_there_are_no_colours(capsys: pytest.CaptureFixture[str]) -> None:
    plain = Console(width=100, highlight=False, markup=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_report, "out", plain)
        show_run(found())
    said = capsys.readouterr().out
    assert "█" in said
    assert "\x1b" not in said
