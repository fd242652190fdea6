"""The tools that show results: experiments, leaderboards and texts.

What they show of an experiment marks it as seen, and the judging tools of the connection leave it out.
"""

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tipbench.bench.compare.leaderboard import Leaderboard
from tipbench.bench.compare.leaderboard_row import LeaderboardRow
from tipbench.bench.compare.messages import headline, verdict, warnings
from tipbench.bench.compare.texts import Entry, ScenarioTexts, Text, TextFilter
from tipbench.core.errors import NotFound, StoredDataDamaged
from tipbench.core.text import counted
from tipbench.server.mcp.tools import SEEN_NOW, Answer, SeenResults, Tool, material
from tipbench.server.views.bench import BenchViews
from tipbench.server.views.boards import ExperimentLine

_TEXT_LIMIT = 1_000  # characters of each: a page has up to 48 texts


class Experiments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    limit: int = Field(20, ge=1, le=100, description="How many to list, the newest first.")


class OfExperiment(BaseModel):
    model_config = ConfigDict(extra="forbid")

    experiment: str = Field(min_length=1, max_length=500, description="A name that experiments lists.")


class TextsOf(OfExperiment):
    scenario: str | None = Field(None, max_length=500)
    model: str | None = Field(None, max_length=500)
    prompt: str | None = Field(None, max_length=500)
    offset: int = Field(0, ge=0, description="Where to go on: what next_offset said.")


@dataclass(frozen=True)
class ResultTools:
    """The tools over one store; `seen` is shared with the judging tools of the same connection."""

    views: BenchViews
    seen: SeenResults

    def tools(self) -> list[Tool]:
        return [
            Tool(
                "experiments",
                "List experiments, each in a line: the answer where everything is judged, else how much waits. An "
                "experiment whose answer is shown gives you no items to judge any more.",
                Experiments,
                self.experiments,
            ),
            Tool(
                "leaderboard",
                "Read which model with which prompt is best: the answer first, then what to do next, then the rows. "
                "Afterwards you get no items of this experiment to judge.",
                OfExperiment,
                self.leaderboard,
            ),
            Tool(
                "texts",
                "Read what the models wrote, side by side, with scores: the best and the worst text of each row on "
                "each scenario. Afterwards you get no items of this experiment to judge.",
                TextsOf,
                self.texts,
            ),
        ]

    def experiments(self, asked: Experiments) -> Answer:
        lines = self.views.boards.experiments()
        if not lines:
            return {"says": "There is no experiment yet; start_collection makes one.", "experiments": []}
        return {
            "says": f"{counted(len(lines), 'experiment')}, the newest first.",
            "experiments": [self._line(one) for one in lines[: asked.limit]],
        }

    def leaderboard(self, asked: OfExperiment) -> Answer:
        board = self._board(asked.experiment)
        self.seen.add(asked.experiment)
        answer, step = board.answer.sentences
        return {
            "says": f"{answer} {step}",
            "details": [headline(board), *verdict(board), *warnings(board)],
            "rows": [_row(board, row) for row in board.rows],
            "note": SEEN_NOW,
        }

    def texts(self, asked: TextsOf) -> Answer:
        self._board(asked.experiment)
        wanted = TextFilter(asked.scenario, asked.model, asked.prompt, offset=asked.offset)
        page = self.views.boards.texts(asked.experiment).page(wanted)
        self.seen.add(asked.experiment)
        return {
            "says": f"{page.entries} of {page.total} entries, where rows differ most first. {SEEN_NOW}",
            "scenarios": [_scenario(one) for one in page.scenarios],
            "next_offset": page.next_offset,
        }

    def _board(self, experiment: str) -> Leaderboard:
        try:
            return self.views.boards.leaderboard(experiment)
        except NotFound:
            raise NotFound(f"there is no experiment '{experiment}'; experiments lists them") from None

    def _line(self, line: ExperimentLine) -> dict[str, Any]:
        counts = f"{line.judged} cells judged, {line.pending} pending, {line.failed} failed"
        if line.problem:
            says = f"can't be read: {line.problem}"
        elif line.pending or not line.judged or self._is_open_decision(line):
            says = f"{counts}; leaderboard has the answer so far"
        else:
            try:
                says = self.views.boards.leaderboard(line.name).answer.says
                self.seen.add(line.name)
            except StoredDataDamaged as error:
                says = f"can't be read: {error}"
        return {"experiment": line.name, "says": says}

    def _is_open_decision(self, line: ExperimentLine) -> bool:
        return line.decision and self.views.decisions.get(line.name).round.is_open


def _scenario(found: ScenarioTexts) -> dict[str, Any]:
    shown = next((entry.best for entry in found.entries if entry.best), None)
    return {
        "scenario": found.scenario,
        "situation": material(shown.about, shown.run_id, limit=_TEXT_LIMIT) if shown else "",
        "rows": [_entry(entry) for entry in found.entries],
    }


def _entry(entry: Entry) -> dict[str, Any]:
    texts = {"best": entry.best, "worst": entry.worst}
    return {
        "model": entry.row.model,
        "prompt": entry.row.prompt,
        "composite": rounded(entry.composite),
        **{name: _text(text) for name, text in texts.items() if text},
        "remarks": list(entry.remarks),
    }


def _text(text: Text) -> dict[str, Any]:
    """Return a text between delimiters that are derived from its run's id, which the model could not know."""
    return {"composite": rounded(text.composite), "text": material(text.text, text.run_id, limit=_TEXT_LIMIT)}


def _row(board: Leaderboard, row: LeaderboardRow) -> dict[str, Any]:
    interval = row.intervals.get("composite")
    return {
        "model": row.model,
        "prompt": row.prompt,
        "composite": rounded(row.composite),
        "interval": [rounded(interval.low), rounded(interval.high)] if interval else None,
        "may_be_best": row.rank.top if row.rank else None,
        "scores": {name: rounded(row.means[name]) for name in board.scores if name in row.means},
        "judged": row.judged,
        "pending": row.pending,
        "failed": row.failed,
    }


def rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
