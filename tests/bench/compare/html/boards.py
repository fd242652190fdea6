"""Boards of made-up cells, small and quick to make."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from tipbench.bench.compare.html.page import Report
from tipbench.bench.compare.leaderboard import Leaderboard, leaderboard
from tipbench.bench.compare.reliability import Agreement, JudgedBatch
from tipbench.bench.compare.texts import Texts
from tipbench.bench.records import BY_RULE, JudgeNote, Slot, StoredCandidates, StoredCell, Verdict
from tipbench.bench.suites.load import load_suite

RUBRIC = load_suite("tip").rubric


def cell(
    model: str = "m", prompt: str = "v1", scenario: str = "s1", level: str = "x", seconds: float = 2.0
) -> StoredCell:
    """An answered cell that waits for a judge."""
    name = f"{model}/{prompt}/{scenario}"
    return StoredCell(
        run_id=name,
        key=name,
        model=model,
        prompt=prompt,
        prompt_digest="d" * 64,
        scenario=scenario,
        factors={"time_slot": level},
        started_ms=0,
        failure=None,
        candidates=5,
        pending=True,
        metrics={"gen/generate_s": seconds, "gen/output_tokens": 100.0, "answer/diversity": 0.5},
        judged_rubric=None,
        judged_by=None,
        judges=(),
        repeat=0,
        model_bytes=2_019_393_189,
        parameters=3_212_749_888,
    )


def counted(found: StoredCell, step: int, judge: str = "mira") -> StoredCell:
    """Scored, the better the higher the step from 0 to 12."""
    scores = {name: 1.0 + min(4, max(0, step - 4 * place)) for place, name in enumerate(RUBRIC.criteria)}
    scores |= {"format_ok": 1.0, "overlong": 0.0, "composite": sum(scores.values()) + 2}
    return replace(
        found,
        pending=False,
        metrics={**found.metrics, **scores},
        judged_rubric=RUBRIC.digest,
        judged_by=judge,
        judges=(JudgeNote(judge, RUBRIC.digest, "batch", provisional=False),),
    )


def provisional(found: StoredCell, step: int) -> StoredCell:
    scores = {f"judge/lexical/{name}": counted(found, step).metrics[name] for name in RUBRIC.score_names}
    note = JudgeNote("lexical", RUBRIC.digest, "batch-0", provisional=True)
    return replace(found, metrics={**found.metrics, **scores}, judges=(note,))


def failed(found: StoredCell) -> StoredCell:
    return replace(found, failure="timed out", candidates=0, pending=False, metrics={})


def empty(found: StoredCell) -> StoredCell:
    metrics = {**found.metrics, **RUBRIC.lowest()}
    return replace(found, candidates=0, pending=False, metrics=metrics, judged_rubric=RUBRIC.digest, judged_by=BY_RULE)


def grid(models: Sequence[str], prompts: Sequence[str], scenarios: int = 5) -> list[StoredCell]:
    """All scored; earlier models and later prompts are better, and no two rows are alike."""
    return [
        counted(
            cell(model, prompt, f"s{s}", "early" if s % 2 else "late", seconds=5.0 - m + p / 2),
            10 - 4 * m + 2 * p - (s + m * p) % 3,
        )
        for m, model in enumerate(models)
        for p, prompt in enumerate(prompts)
        for s in range(scenarios)
    ]


def board(cells: Sequence[StoredCell], experiment: str = "e") -> Leaderboard:
    return leaderboard(experiment, cells, RUBRIC, {})


def batch(state: str = "counts", why: str = "", judge: str = "mira", kappa: float | None = 0.75) -> JudgedBatch:
    return JudgedBatch(
        judge, "batch-1", 0, 40, state, why, 24, {"tone": Agreement(kappa, 0.5, 0.9, 0.125, -0.25, 0.5, 0.375)}
    )


class Written(NamedTuple):
    """What every model writes, for every scenario, and what every judge notes on it."""

    text: str = "Ring now."
    note: str = "Good."
    about: str = "A nurse at night."


def texts(found: Leaderboard, written: Written | None = None) -> Texts:
    """Two judges scored two texts of every scored cell, the first one better; without `written` they scored nothing."""

    def verdict(cell: StoredCell, number: int, judge: int) -> Verdict:
        slot = Slot("slot", cell.run_id, number, "", "", {})
        flags = {"format_ok": True, "overlong": judge == 1}
        composite = round(sum(cell.metrics.get(name, 4.0) for name in RUBRIC.criteria)) + judge - 2.0 * number
        return Verdict(slot, {"tone": 4}, flags, (), composite, written.note if written else "")

    scored = [cell for row in found.grid.rows for cell in row.cells if cell.judges and cell.candidates]
    verdicts = [
        {(cell.run_id, number): verdict(cell, number, judge) for cell in scored for number in (0, 1)}
        for judge in ((0, 1) if written else ())
    ]
    one = written or Written()

    def read(run_ids: Sequence[str]) -> dict[str, StoredCandidates]:
        return {run_id: StoredCandidates(one.about, True, (one.text,) * 5) for run_id in run_ids}

    return Texts(found, verdicts, read)


def report(found: Leaderboard, written: Written | None = None, batches: Sequence[JudgedBatch] = ()) -> Report:
    shown = texts(found, written).in_file()
    return Report(found, batches, {"tone": 0.625} if batches else {}, shown, "2026-04-28 09:41 UTC")
