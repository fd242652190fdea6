"""How good is an automatic judge? It scores all anchors of a suite, twice, and is held against their known scores."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tipbench.bench.judge.drift import AnchorReferences, Drift, assess, read_drift
from tipbench.bench.judge.file import BatchItem, judge_file
from tipbench.bench.judge.judges.interface import Judge, ResumableJudge
from tipbench.bench.judge.verify import verify
from tipbench.bench.records import Batch, GoldItem, Slot
from tipbench.bench.suites.anchors import ENOUGH_ANCHORS
from tipbench.bench.suites.rubric import Rubric
from tipbench.bench.tracking.batches import COST_USD
from tipbench.core.errors import InvalidInput
from tipbench.core.files import atomic_write, make_private_folder, read_regular
from tipbench.core.identity import data_digest, text_digest
from tipbench.core.paths import calibrations_folder
from tipbench.core.text import utc_minute
from tipbench.core.untrusted import json_text

_MAX_BYTES = 1_000_000


@dataclass(frozen=True)
class Calibration:
    """What a batch by a judge would be worth, and what scoring the anchors took."""

    judge: str
    rubric: str
    rubric_digest: str
    at_ms: int
    drift: Drift
    usage: Mapping[str, float]

    @property
    def would_count(self) -> bool:
        return not self.drift.quarantine

    @property
    def says(self) -> str:
        if self.would_count:
            return f"A batch by '{self.judge}' would count: it scores {self.drift.anchors} anchors as they should be."
        return f"A batch by '{self.judge}' would be on hold: {self.drift.quarantine}."

    @property
    def in_short(self) -> str:
        """The same in one line, for a list of judges."""
        kappas = [found.kappa.value for found in self.drift.criteria.values()]
        figures = "/".join("–" if one is None else f"{one:.2f}" for one in kappas)
        state = "would count" if self.would_count else "would be on hold"
        return f"calibrated on {utc_minute(self.at_ms)}: {state}, κ {figures}{self.cost}"

    @property
    def cost(self) -> str:
        usd, seconds = self.usage.get(COST_USD), self.usage.get("agent/seconds")
        items = 2 * self.drift.anchors
        parts = [f"{usd:.2f} USD" if usd else "", f"{seconds:.0f} s" if seconds else ""]
        told = " and ".join(part for part in parts if part)
        return f", {told} for {items} items" if told else ""


def calibrate(judge: Judge, rubric: Rubric, anchors: Sequence[GoldItem], batch_id: str, now_ms: int) -> Calibration:
    """Have the judge score every anchor twice, in random order; raise InvalidInput if there are too few anchors.

    Anchors that were made from the judge's own scores are left out.
    """
    anchors = [anchor for anchor in anchors if judge.identity.name not in anchor.by]
    if len(anchors) < ENOUGH_ANCHORS:
        raise InvalidInput(
            f"the suite has {len(anchors)} anchors that '{judge.identity.name}' did not make, and it takes "
            f"{ENOUGH_ANCHORS} to say anything about a judge; docs/suites.md says how to write them"
        )
    batch, file = _batch(judge.identity.name, rubric, anchors, batch_id, now_ms)
    verdicts = verify(judge.score(file), batch, rubric)
    drift = assess(verdicts, rubric, AnchorReferences(anchors, rubric), (), len(anchors))
    usage = dict(judge.usage) if isinstance(judge, ResumableJudge) else {}
    return Calibration(judge.identity.name, rubric.name, rubric.digest, now_ms, drift, usage)


def _batch(
    judge: str, rubric: Rubric, anchors: Sequence[GoldItem], batch_id: str, now_ms: int
) -> tuple[Batch, dict[str, Any]]:
    rng = random.Random(batch_id)
    items = []
    for anchor in anchors:
        flags = rubric.checked_flags(anchor.candidate, True, anchor.scenario_id)
        digests = text_digest(anchor.candidate), text_digest(anchor.scenario)
        first = Slot(_name(batch_id, anchor.id, 1), "", 0, *digests, flags, "anchor", anchor.id, anchor.scores)
        second = replace(first, slot=_name(batch_id, anchor.id, 2), kind="repeat", of=first.slot, reference={})
        items += [BatchItem(slot, anchor.scenario, anchor.candidate) for slot in (first, second)]
    rng.shuffle(items)
    batch = Batch(batch_id, judge, False, 0, rubric.digest, now_ms, batch_id, tuple(item.slot for item in items))
    return batch, judge_file(batch, rubric, items)


def _name(*parts: str | int) -> str:
    return data_digest(list(parts))[:8]


# Stored calibrations: the newest of each judge and rubric


def save_calibration(home: Path, found: Calibration) -> None:
    folder = calibrations_folder(home)
    make_private_folder(folder)
    data = {
        "judge": found.judge,
        "rubric": found.rubric,
        "rubric_digest": found.rubric_digest,
        "at_ms": found.at_ms,
        "drift": found.drift.as_data(),
        "usage": dict(found.usage),
    }
    name = data_digest([found.judge, found.rubric_digest])[:32]
    atomic_write(folder / f"{name}.json", json_text(data), durable=True)


def calibrations_in_short(home: Path, rubric_digest: str) -> dict[str, str]:
    """Return what was found about each judge that was calibrated with this rubric, in one line."""
    return {one.judge: one.in_short for one in reversed(load_calibrations(home)) if one.rubric_digest == rubric_digest}


def load_calibrations(home: Path) -> list[Calibration]:
    """Return the stored calibrations, newest first; one that can't be read is left out."""
    found = []
    for path in calibrations_folder(home).glob("*.json"):
        try:
            data = json.loads(read_regular(path, _MAX_BYTES))
            found.append(Calibration(**{**data, "drift": read_drift(data["drift"])}))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return sorted(found, key=lambda one: -one.at_ms)
