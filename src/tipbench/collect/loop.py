"""The loop: generate a cell, store it, go on. A failed cell is an outcome like any other."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from tipbench import __version__
from tipbench.collect.answer import read_answer
from tipbench.engines.interface import Engine
from tipbench.engines.residency import MemoryWatch
from tipbench.errors import EngineError, EngineUnreachable
from tipbench.records import Cell, Failure, Outcome, RubricText
from tipbench.suites.suite import Suite
from tipbench.tracking.runs import cell_draft
from tipbench.tracking.store import RunDraft

Clock = Callable[[], float]


def collect(
    cells: Sequence[Cell],
    engine_of: Callable[[str], Engine],
    suite: Suite,
    keep: Callable[[str, RunDraft], None],
    watch: MemoryWatch,
    clock: Clock,
) -> Iterator[Outcome]:
    """Yields each outcome once it is kept. Never are two models in memory: one leaves before the next comes.

    A cell that fails is stored as a failure and the grid goes on; an engine that can't be reached any more ends it,
    and what is missing is left for the next start.
    """
    rubric = rubric_text(suite)
    loaded: str | None = None
    try:
        for cell in cells:
            if loaded and loaded != cell.model.name:
                _leave(engine_of(loaded), loaded)
            loaded = cell.model.name
            engine = engine_of(cell.model.name)
            watch.begin(engine)
            started = clock()
            outcome = generate(cell, engine, suite)
            span_ms = (round(started * 1000), round(clock() * 1000))
            keep(cell.key, cell_draft(outcome, rubric, suite.name, __version__, span_ms, watch.figures()))
            yield outcome
    finally:
        if loaded:
            _leave(engine_of(loaded), loaded)


def _leave(engine: Engine, model: str) -> None:
    """Takes the model out of memory. An engine that can't be reached is past asking, and the next cell says so."""
    with suppress(EngineUnreachable):
        engine.unload(model)


def generate(cell: Cell, engine: Engine, suite: Suite) -> Outcome:
    try:
        generation = engine.generate(cell.request)
    except EngineUnreachable:
        raise
    except EngineError as error:
        return Failure(cell, str(error))
    return read_answer(suite, cell, generation)


def rubric_text(suite: Suite) -> RubricText:
    rubric = suite.rubric
    return RubricText(rubric.name, rubric.digest, rubric.text, rubric.lowest())
