"""What is shown of a simulation, as wide as a terminal and without its colours elsewhere."""

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.cli.sim.making import answer, found, found_by_a_gate
from tipbench.bench.records import NextStep
from tipbench.cli import console as cli_console
from tipbench.cli.sim import gate_report, run_report
from tipbench.cli.sim.gate_report import Contest, next_step, show_gate
from tipbench.cli.sim.run_report import headline, show_run, with_answer

CONTEST = Contest("egreedy/v2", "egreedy", None)


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Console:
    made = Console(width=getattr(request, "param", 80), record=True, highlight=False, markup=False, force_terminal=True)
    for module in (cli_console, run_report, gate_report):
        monkeypatch.setattr(module, "out", made)
    return made


def _lines(console: Console) -> list[str]:
    return console.export_text().splitlines()


@pytest.mark.parametrize(("console", "curve"), [(80, 8), (120, 30)], indirect=["console"])
def test_a_run_fits_into_the_terminal(console: Console, curve: int) -> None:
    show_run(found(), verbose=True)
    lines = _lines(console)
    tables = [line for line in lines if "egreedy" in line][2:]
    assert len(tables) == 6
    assert all(len(line.rstrip()) <= console.width for line in tables)
    assert "0.200 ±0.010" in tables[1]
    assert "60.0" in tables[1]
    assert len(tables[1].split()[-1]) >= curve
    assert "2 personas, seeds 10000–10029, 300 decisions per life, 10 tips to choose from" in "".join(lines)
    assert sum("chaotic °" in line for line in lines) == 1


@pytest.mark.parametrize("console", [55], indirect=True)
def test_in_a_narrow_terminal_no_figure_is_cut_off(console: Console) -> None:
    show_run(found(), verbose=True)
    show_gate(found_by_a_gate(), CONTEST, "0123456789abcdef")
    tables = [line for line in _lines(console) if "±" in line or "+0." in line]
    assert len(tables) == 11
    assert not any("…" in line for line in tables)
    assert all(len(line.rstrip()) <= console.width for line in tables)


def test_a_run_says_first_which_policy_earns_most_and_what_to_do(console: Console) -> None:
    show_run(found())
    lines = [line.rstrip() for line in _lines(console)]
    assert lines[:2] == [
        "egreedy/v2 earns most.",
        "Next: let it prove itself: tipbench sim gate --candidate egreedy/v2",
    ]
    assert " egreedy/v2             0.200 ±0.010  –" in lines
    assert " egreedy                0.100 ±0.010  0.100" in lines
    assert not any("chaotic" in line for line in lines)


@pytest.mark.parametrize(
    ("live", "made", "says", "step"),
    [
        (
            "egreedy",
            answer(0.1, 0.02),
            "egreedy/v2 earns most, 0.200 a decision: 0.100 more than egreedy (95 % interval: 0.080 to 0.120).",
            "let egreedy/v2 prove itself against egreedy on other lives: "
            "tipbench sim gate --candidate egreedy/v2 --first-seed 10030 --world 'my world.yaml'",
        ),
        ("egreedy/v2", answer(0.1, 0.02), "egreedy/v2 earns most", "keep egreedy/v2, which is live"),
        (
            "egreedy",
            answer(0.1, 0.11),
            "Undecided: egreedy/v2 has the highest mean, 0.200 a decision, but its lead of 0.100 over egreedy may be "
            "chance (95 % interval: -0.010 to 0.210).",
            "simulate more lives: tipbench sim run --steps 300 --seeds 60",
        ),
        ("egreedy", answer(0.1, 0.11, 100_000), "Undecided", "keep egreedy, which is live"),
        (None, answer(0.1, 0.11, None), "Undecided", "let egreedy/v2 prove itself against the live policy"),
        ("egreedy", answer(0.001, 0.008), "egreedy/v2 and egreedy earn practically the same", "keep egreedy, which is"),
    ],
)
def test_a_run_is_weighed(live: str | None, made: dict[str, Any], says: str, step: str) -> None:
    again = ("tipbench", "sim", "run", "--steps", "300")
    weighed = with_answer({**found(), "answer": made}, again, Path("my world.yaml"), live)["answer"]
    assert weighed["says"].startswith(says)
    assert str(NextStep(**weighed["next"])).startswith(step)


def test_what_can_not_go_live_is_named_and_the_next_best_is_put_forward() -> None:
    made = answer(0.1, 0.02)
    other = {**made, "best": "category-mean", "ahead": {"egreedy/v2": made["ahead"]["egreedy"]}}
    overall = {"category-mean": found()["overall"]["egreedy"]}
    step = with_answer({**found(), "answer": other, "overall": overall}, (), None, "egreedy")["answer"]["next"]
    assert step["text"].endswith("(category-mean is for comparisons only and can't go live)")
    assert step["command"] == "tipbench sim gate --candidate egreedy/v2 --first-seed 10030"


def test_one_seed_decides_nothing() -> None:
    one = found(margin=None)
    one["plan"]["seeds"]["count"] = 1
    weighed = with_answer(one, ("tipbench", "sim", "run"), None, None)["answer"]
    assert weighed["says"].startswith("No answer yet: one seed can't tell a better policy from luck.")
    assert weighed["next"]["command"] == "tipbench sim run --seeds 30"


def test_one_seed_has_no_margin(console: Console) -> None:
    show_run(found(margin=None))
    assert "0.100 ±?" in console.export_text()


def test_one_of_everything() -> None:
    plan = {"simulator": 3, "world": {"name": "tips"}, "seeds": {"first": 7, "count": 1}, "steps": 1, "offered": 1}
    assert headline(plan, 1) == "World 'tips', version 3: 1 persona, seed 7, 1 decision per life, 1 tip to choose from"


def test_a_verdict_comes_first_and_then_its_reasons(console: Console) -> None:
    show_gate(found_by_a_gate(), CONTEST, "0123456789abcdef")
    lines = _lines(console)
    assert lines[0] == "egreedy/v2 may go live: it earns more."
    assert "egreedy, again  must fail  0.100 ±0.010  0.200 ±0.020" in "\n".join(lines)
    assert "✓ gains overall: it earns so much more" in lines
    assert "✓ egreedy, again fails: it fails, as it must" in lines
    text = "\n".join(lines)
    assert "tipbench recommend promote egreedy/v2 --gate 0123456789abcdef" in text
    assert "specialist  +0.300    +0.200  yes" in text
    assert "chaotic     +0.000    +0.000  control" in text


def test_what_did_not_pass_changes_nothing(console: Console) -> None:
    show_gate(found_by_a_gate(passed=False), CONTEST, "0123456789abcdef")
    lines = _lines(console)
    assert lines[0] == "egreedy/v2 may not go live, because it loses."
    assert "✗ gains overall: it earns so much more" in lines
    assert "Nothing changes: egreedy stays." in lines[-1]


def test_a_gate_that_nobody_can_go_live_by_says_so() -> None:
    found = found_by_a_gate()
    found["plan"]["seeds"]["count"] = 15
    said = next_step(found, CONTEST, "0123456789abcdef")
    assert "It can't be used for a promotion: it had 15 seeds, and 30 are required" in said
    assert "tipbench recommend promote" not in said
    said = next_step(found_by_a_gate(), CONTEST._replace(candidate="category-mean"), "0123456789abcdef")
    assert "category-mean is for comparisons only and can't go live" in said


def test_a_world_of_ones_own_is_named_again(console: Console) -> None:
    show_gate(found_by_a_gate(), CONTEST._replace(world=Path("my world.yaml")), "0123456789abcdef")
    assert "--world 'my world.yaml'" in console.export_text()


def test_without_a_terminal_there_are_no_colours(capsys: pytest.CaptureFixture[str]) -> None:
    plain = Console(width=100, highlight=False, markup=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_report, "out", plain)
        patch.setattr(cli_console, "out", plain)
        show_run(found(), verbose=True)
    said = capsys.readouterr().out
    assert "█" in said
    assert "\x1b" not in said
