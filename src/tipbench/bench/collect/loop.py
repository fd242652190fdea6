"""The loop: generate a cell, store it, go on. A failed cell is an outcome like any other."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import groupby

from tipbench.bench.collect.answer import read_answer
from tipbench.bench.collect.workers import side_by_side
from tipbench.bench.engines.interface import Engine
from tipbench.bench.engines.residency import MemoryWatch
from tipbench.bench.engines.throttle import Throttle
from tipbench.bench.records import Cell, Failure, Outcome, RubricText
from tipbench.bench.suites.suite import Suite
from tipbench.bench.tracking.runs import cell_draft
from tipbench.bench.tracking.store import RunDraft
from tipbench.core.errors import EngineError, EngineUnreachable
from tipbench.core.version import __version__

Clock = Callable[[], float]


def collect(
    cells: Iterable[Cell],
    engine_of: Callable[[str], Engine],
    suite: Suite,
    keep: Callable[[str, RunDraft], None],
    watch: MemoryWatch,
    clock: Clock,
    concurrency: int | None = None,
) -> Iterator[Outcome]:
    """Yields each outcome once it is kept. Never are two models in memory: one leaves before the next comes.

    A cell that fails is stored as a failure and the grid goes on; an engine that can't be reached any more ends it,
    and what is missing is left for the next start.
    """
    rubric = rubric_text(suite)
    for model, block in groupby(cells, key=lambda cell: cell.model.name):
        engine = engine_of(model)
        throttle = Throttle(concurrency or engine.at_once)

        def one(cell: Cell, engine: Engine = engine, throttle: Throttle = throttle) -> tuple[Outcome, RunDraft]:
            if throttle.limit == 1:
                watch.begin(engine)  # side by side, nobody can tell which cell a peak belongs to
            started = clock()
            outcome = generate(cell, engine, throttle, suite)
            span_ms = (round(started * 1000), round(clock() * 1000))
            return outcome, cell_draft(outcome, rubric, suite.name, __version__, span_ms, watch.figures())

        watch.begin(engine)
        try:
            for outcome, draft in side_by_side(one, block, throttle.limit):
                keep(outcome.cell.key, draft)
                yield outcome
        except BaseException:
            with suppress(EngineError):  # what went wrong first is what the user should read
                engine.unload(model)
            raise
        try:
            engine.unload(model)
        except KeyboardInterrupt:
            with suppress(EngineError):
                engine.unload(model)
            raise


def generate(cell: Cell, engine: Engine, throttle: Throttle, suite: Suite) -> Outcome:
    try:
        generation = throttle.run(lambda: engine.generate(cell.request))
    except EngineUnreachable:
        raise
    except EngineError as error:
        return Failure(cell, str(error))
    return read_answer(suite, cell, generation)


def rubric_text(suite: Suite) -> RubricText:
    rubric = suite.rubric
    return RubricText(rubric.name, rubric.digest, rubric.text, rubric.lowest())
