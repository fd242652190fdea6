"""Finished cells of the built-in suite, as `tipbench collect` stores them: real prompts and rubric, usual answers."""

import json
import time
from itertools import cycle, islice

from tipbench import __version__
from tipbench.bench.collect.grid import Grid
from tipbench.bench.collect.loop import read_answer, rubric_text
from tipbench.bench.engines.residency import MemoryWatch
from tipbench.bench.engines.scripted import ScriptedEngine
from tipbench.bench.options import Options
from tipbench.bench.records import Generation
from tipbench.bench.suites.load import load_suite
from tipbench.bench.tracking.runs import cell_draft
from tipbench.bench.tracking.store import RunDraft

_TIP = (
    "Ring the wholesaler at 07:30, before the van leaves the yard, and ask for the two breakers to be put aside; "
    "whoever is on the desk writes it down, and tomorrow's job does not begin with an hour in a queue. ({})"
)
_ANSWER = json.dumps([_TIP.format(number) for number in range(1, 6)])
_MODEL = "scripted/a"
_MOST_REPEATS = 1_000


def finished_cells(count: int) -> list[RunDraft]:
    suite = load_suite("tip")
    options = suite.apply_defaults(Options(models=_MODEL, repeats=min(count // 24 + 1, _MOST_REPEATS)))
    rubric = rubric_text(suite)
    memory = MemoryWatch()
    engine = ScriptedEngine()
    memory.begin(engine)
    ended_ms = round(time.time() * 1000)
    drafts = []
    for number, cell in enumerate(islice(cycle(Grid(options, suite, [engine.describe(_MODEL)])), count)):
        generation = Generation(_ANSWER, "stop", prompt_tokens=500, output_tokens=220, load_s=0.4, generate_s=7.5)
        span_ms = (ended_ms + number - 8_000, ended_ms + number)
        answer = read_answer(suite, cell, generation)
        drafts.append(cell_draft(answer, rubric, suite.name, __version__, span_ms, memory.figures()))
    return drafts
