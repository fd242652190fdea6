"""Cells for tests of the leaderboard, as they are read back from MLflow."""

from collections.abc import Mapping
from dataclasses import replace

from tipbench.bench.compare.leaderboard import Leaderboard, leaderboard
from tipbench.bench.records import BY_RULE, JudgeNote, StoredCell
from tipbench.bench.suites.load import load_suite

RUBRIC = load_suite("tip").rubric


def values(composite: float) -> dict[str, float]:
    """Scores that add up to the composite, from 5 to 17: the three criteria share what the format's points leave."""
    share = (composite - 2) / 3
    shares = {"relevance": share, "actionability": share, "tone": share}
    return {**shares, "format_ok": 1.0, "overlong": 0.0, "composite": composite}


def cell(
    scenario: str = "s1",
    model: str = "m",
    prompt: str = "v1",
    repeat: int = 0,
    digest: str = "d1",
    factors: Mapping[str, str] | None = None,
) -> StoredCell:
    """An answered cell that waits for a judge."""
    return StoredCell(
        run_id=f"run/{model}/{prompt}/{digest}/{scenario}/{repeat}",
        key=f"key/{model}/{prompt}/{digest}/{scenario}/{repeat}",
        model=model,
        prompt=prompt,
        prompt_digest=digest,
        scenario=scenario,
        factors=factors or {},
        started_ms=0,
        failure=None,
        candidates=5,
        pending=True,
        metrics={},
        judged_rubric=None,
        judged_by=None,
        judges=(),
        repeat=repeat,
        cluster="persona" if factors and "persona" in factors else None,
    )


def counted(found: StoredCell, composite: float, rubric: str = RUBRIC.digest, judge: str = "agent") -> StoredCell:
    note = JudgeNote(judge, rubric, "batch", provisional=False)
    return replace(
        found,
        pending=False,
        metrics={**found.metrics, **values(composite)},
        judged_rubric=rubric,
        judged_by=judge,
        judges=(*found.judges, note),
    )


def provisional(found: StoredCell, composite: float, rubric: str = RUBRIC.digest) -> StoredCell:
    metrics = {f"judge/lexical/{name}": value for name, value in values(composite).items()}
    note = JudgeNote("lexical", rubric, "batch-0", provisional=True)
    return replace(found, metrics={**found.metrics, **metrics}, judges=(*found.judges, note))


def empty(found: StoredCell, rubric: str = RUBRIC.digest) -> StoredCell:
    return replace(found, candidates=0, pending=False, metrics=RUBRIC.lowest(), judged_rubric=rubric, judged_by=BY_RULE)


def failed(found: StoredCell) -> StoredCell:
    return replace(found, candidates=0, pending=False, failure="timed out")


def persona_cells(model: str, prompt: str, composites: list[float], **more: str) -> list[StoredCell]:
    """Two scenarios a persona, morning and evening, judged with these composites."""
    return [
        counted(
            cell(
                f"p{number // 2}-{slot}",
                model,
                prompt,
                factors={"persona": f"p{number // 2}", "time_slot": slot},
                **more,  # type: ignore[arg-type]
            ),
            composite,
        )
        for number, composite in enumerate(composites)
        for slot in ("morning" if number % 2 == 0 else "evening",)
    ]


def board(*cells: StoredCell) -> Leaderboard:
    return leaderboard("e", cells, RUBRIC, {})
