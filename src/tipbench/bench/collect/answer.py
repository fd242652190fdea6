"""From what an engine gave back to an answer with candidates."""

from tipbench.bench.collect.diversity import diversity
from tipbench.bench.records import Answer, Cell, Generation
from tipbench.bench.suites.suite import Suite


def read_answer(suite: Suite, cell: Cell, generation: Generation) -> Answer:
    read = suite.contract.read(generation.text, cell.n_tips)
    return Answer(
        cell=cell,
        generation=generation,
        candidates=read.candidates,
        found=read.found,
        format_ok=read.format_ok,
        read_as=read.read_as,
        diversity=diversity(read.candidates),
    )
