"""From an engine's text to an answer: nothing that was said is lost, and nothing usable is still an answer."""

from tipbench.bench.collect.grid import Grid
from tipbench.bench.collect.loop import read_answer
from tipbench.bench.options import make_options
from tipbench.bench.records import Answer, Generation, ModelInfo
from tipbench.bench.suites.load import load_suite

SUITE = load_suite("tip")
(CELL,) = Grid(
    make_options({"n_tips": 2, "prompts": "v1", "n_scenarios": 1}), SUITE, [ModelInfo("scripted/a", "scripted")]
)


def read(text: str) -> Answer:
    return read_answer(SUITE, CELL, Generation(text, "stop"))


def test_an_answer_that_keeps_the_contract() -> None:
    answer = read('["call Anke", "sleep"]')
    assert answer.cell is CELL
    assert answer.candidates == ("call Anke", "sleep")
    assert (answer.found, answer.format_ok, answer.read_as, answer.diversity) == (2, True, "contract", 1.0)


def test_as_many_candidates_as_the_cell_asked_for() -> None:
    answer = read('["a", "b", "c"]')
    assert answer.candidates == ("a", "b")
    assert (answer.found, answer.format_ok) == (3, False)


def test_an_answer_without_a_candidate_is_an_answer() -> None:
    answer = read("I can't help with that.")
    assert answer.candidates == ()
    assert (answer.found, answer.format_ok, answer.read_as, answer.diversity) == (0, False, "nothing", None)
    assert answer.generation.text == "I can't help with that."
