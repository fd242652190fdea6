"""What the models wrote, side by side: scenarios across, rows down, the best and the worst text of each with scores.

Texts are read for what is shown and no more; everything else comes from the leaderboard and the judges' verdicts.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from tipbench.bench.compare.leaderboard import Leaderboard, row_label
from tipbench.bench.compare.leaderboard_row import LeaderboardRow
from tipbench.bench.compare.rows import Row
from tipbench.bench.records import StoredCandidates, StoredCell, Verdict
from tipbench.core.errors import InvalidInput, StoredDataDamaged
from tipbench.core.text import counted
from tipbench.core.untrusted import printable, shown

ENTRIES_PER_PAGE = 24  # of a row on a scenario, with two texts at most
ENTRIES_IN_FILE = 200
_REASON_LIMIT = 200  # characters of why a cell failed
_OF_LEADER = 2  # number of its best texts, and of its worst ones

Item = tuple[str, int]  # run id, index of the candidate
ReadTexts = Callable[[Sequence[str]], Mapping[str, StoredCandidates]]  # by run id; runs that are gone are left out


@dataclass(frozen=True)
class Text:
    """A candidate with its scores, as means over the judges that scored it."""

    run_id: str
    scenario: str
    about: str  # the scenario in words, as judges read it
    text: str  # as the model wrote it: untrusted
    composite: float | None  # None: not scored yet
    scores: Mapping[str, float]  # criteria, and flags as 0 or 1
    notes: tuple[str, ...]  # by judges: untrusted, too


@dataclass(frozen=True)
class Entry:
    """What one row wrote for one scenario."""

    row: LeaderboardRow
    scores: Mapping[str, float]  # as they count on the leaderboard; empty: none
    best: Text | None  # of those that match the filter; a text without scores where none has any
    worst: Text | None  # None where no other text is scored
    texts: int  # all that the row wrote for the scenario
    unscored: int  # of them
    failures: tuple[str, ...]  # why cells got no answer
    empty: int  # answers without a usable text

    @property
    def composite(self) -> float | None:
        return self.scores.get("composite")

    @property
    def remarks(self) -> tuple[str, ...]:
        """What there is beside the scored texts."""
        if not (self.texts or self.failures or self.empty):
            return ("not asked",)
        failed = [f"failed: {printable(why, _REASON_LIMIT)}" for why in dict.fromkeys(self.failures)]
        empty = ["no usable text"] if self.empty else []
        unscored = [f"{counted(self.unscored, 'text')} not scored yet"] if self.unscored else []
        return (*failed, *empty, *unscored)


@dataclass(frozen=True)
class ScenarioTexts:
    """Rows on one scenario, in the order of the leaderboard."""

    scenario: str
    spread: float | None  # points of the composite between the best row and the worst; None with fewer than two scores
    entries: tuple[Entry, ...]

    @property
    def about(self) -> str:
        """The scenario in words; empty where no text of it is shown."""
        return next((one.best.about for one in self.entries if one.best), "")

    @property
    def differences(self) -> dict[str, float]:
        """By how much the first of two rows is ahead of the second, score by score."""
        first, second = (one.scores for one in self.entries)
        return {name: first[name] - second[name] for name in first if name in second}


@dataclass(frozen=True)
class TextFilter:
    """Which texts to show, and from where on; None matches everything."""

    scenario: str | None = None
    model: str | None = None
    prompt: str | None = None
    score_from: float | None = None
    score_to: float | None = None
    rows: tuple[str, str] | None = None  # labels of two rows to compare
    offset: int = 0  # number of entries to skip

    @property
    def by_score(self) -> bool:
        return self.score_from is not None or self.score_to is not None

    def includes(self, composite: float | None) -> bool:
        if not self.by_score:
            return True
        low, high = self.score_from, self.score_to
        return composite is not None and (low is None or composite >= low) and (high is None or composite <= high)


@dataclass(frozen=True)
class TextPage:
    """Part of the texts that match a filter."""

    wanted: TextFilter
    scenarios: tuple[ScenarioTexts, ...]
    entries: int  # shown here
    total: int  # entries that match
    total_scenarios: int
    best_of_leader: tuple[Text, ...] = ()
    worst_of_leader: tuple[Text, ...] = ()

    @property
    def next_offset(self) -> int | None:
        end = self.wanted.offset + self.entries
        return end if end < self.total else None


@dataclass(frozen=True)
class _Candidate:
    """A text that has not been read."""

    item: Item
    scenario: str
    composite: float | None


_Pair = tuple[str, int]  # scenario, index of the row


class Texts:
    """The texts behind a leaderboard."""

    def __init__(self, board: Leaderboard, verdicts: Iterable[Mapping[Item, Verdict]], read: ReadTexts) -> None:
        """`verdicts` has one mapping per judge; `read` is called once per page."""
        self._board = board
        self._read = read
        self._verdicts: dict[Item, list[Verdict]] = {}
        for one in verdicts:
            for item, verdict in one.items():
                self._verdicts.setdefault(item, []).append(verdict)
        self._composites = {item: fmean(one.composite for one in found) for item, found in self._verdicts.items()}
        self._cells = [_by_scenario(row) for row in board.grid.rows]
        self._labels = {row_label(board, row): index for index, row in enumerate(board.rows)}

    def in_file(self) -> TextPage:
        """Return the leader's best and worst texts, and as many scenarios as one file should hold."""
        return self._page(TextFilter(), ENTRIES_IN_FILE, leader=True)

    def overview(self) -> TextPage:
        """Return the leader's best and worst texts, and the first page of all."""
        return self._page(TextFilter(), ENTRIES_PER_PAGE, leader=True)

    def page(self, wanted: TextFilter) -> TextPage:
        """Return the texts that match; raise InvalidInput for a filter that makes no sense."""
        self._check(wanted)
        return self._page(wanted, ENTRIES_PER_PAGE)

    def _page(self, wanted: TextFilter, most: int, leader: bool = False) -> TextPage:
        rows = self._rows(wanted)
        found = [pair for scenario in self._order(wanted, rows) for pair in self._pairs(wanted, scenario, rows)]
        taken = _whole_scenarios(found[wanted.offset :], most)
        best, worst = self._of_leader() if leader else ([], [])
        ends = {pair: _ends(self._matching(wanted, pair)) for pair in taken}
        texts = self._texts([*best, *worst, *(one for both in ends.values() for one in both if one)])
        entries: dict[str, list[Entry]] = {}
        for pair in taken:
            entries.setdefault(pair[0], []).append(self._entry(pair, *(texts.get(one) for one in ends[pair])))
        return TextPage(
            wanted=wanted,
            scenarios=tuple(ScenarioTexts(one, self._spread(one, rows), tuple(of)) for one, of in entries.items()),
            entries=len(taken),
            total=len(found),
            total_scenarios=len({scenario for scenario, _ in found}),
            best_of_leader=tuple(texts[one] for one in best),
            worst_of_leader=tuple(texts[one] for one in worst),
        )

    def _check(self, wanted: TextFilter) -> None:
        rows = self._board.rows
        for name, value, known in (
            ("scenario", wanted.scenario, self._board.grid.scenarios),
            ("model", wanted.model, {row.model for row in rows}),
            ("prompt", wanted.prompt, {row.prompt for row in rows}),
            *(("variant", label, self._labels) for label in wanted.rows or ()),
        ):
            if value is not None and value not in known:
                raise InvalidInput(f"this experiment has no {name} {shown(value)}; choose one from the list")
        low, high = wanted.score_from, wanted.score_to
        if low is not None and high is not None and low > high:
            raise InvalidInput(f"no score can be from {low:g} to {high:g}; swap the two")
        if wanted.rows and wanted.rows[0] == wanted.rows[1]:
            raise InvalidInput("a variant can't be compared with itself; choose two different ones")
        if wanted.rows and (wanted.model or wanted.prompt or wanted.by_score):
            raise InvalidInput("two variants are compared in all their texts; leave out model, prompt and score")

    def _rows(self, wanted: TextFilter) -> list[int]:
        if wanted.rows:
            return [self._labels[label] for label in wanted.rows]
        return [
            index
            for index, row in enumerate(self._board.rows)
            if wanted.model in (None, row.model) and wanted.prompt in (None, row.prompt)
        ]

    def _order(self, wanted: TextFilter, rows: Sequence[int]) -> list[str]:
        """Return the scenarios: where rows differ most first; for a single row, the one with its worst text first."""
        scenarios = self._board.grid.scenarios
        if wanted.scenario is not None:
            return [wanted.scenario]
        if len(rows) == 1:
            worst = {one: _ends(self._matching(wanted, (one, rows[0])))[::-1] for one in scenarios}
            lowest = {one: next((end.composite for end in ends if end), None) for one, ends in worst.items()}
            return sorted(scenarios, key=lambda one: _none_last(lowest[one]))
        spreads = {one: self._spread(one, rows) for one in scenarios}
        return sorted(scenarios, key=lambda one: _none_last(spreads[one], -1))

    def _spread(self, scenario: str, rows: Sequence[int]) -> float | None:
        found = [self._board.grid.rows[index].scores.get(scenario) for index in rows]
        composites = [scores["composite"] for scores in found if scores]
        return max(composites) - min(composites) if len(composites) > 1 else None

    def _pairs(self, wanted: TextFilter, scenario: str, rows: Sequence[int]) -> list[_Pair]:
        """Return the rows that have something to show; of two to compare, both or none."""
        found = [
            (scenario, index)
            for index in rows
            if scenario in self._cells[index] and (not wanted.by_score or self._matching(wanted, (scenario, index)))
        ]
        return [(scenario, index) for index in rows] if wanted.rows and found else found

    def _matching(self, wanted: TextFilter, pair: _Pair) -> list[_Candidate]:
        scenario, index = pair
        items = ((cell.run_id, n) for cell in self._cells[index].get(scenario, ()) for n in range(cell.candidates))
        found = [_Candidate(item, scenario, self._composites.get(item)) for item in items]
        return [one for one in found if wanted.includes(one.composite)]

    def _of_leader(self) -> tuple[list[_Candidate], list[_Candidate]]:
        leader = self._board.leader
        if leader is None:
            return [], []
        pairs = [(scenario, self._board.rows.index(leader)) for scenario in self._board.grid.scenarios]
        every = [one for pair in pairs for one in self._matching(TextFilter(), pair) if one.composite is not None]
        best = sorted(every, key=lambda one: -_value(one))[:_OF_LEADER]
        return best, [one for one in sorted(every, key=_value) if one not in best][:_OF_LEADER]

    def _texts(self, candidates: Sequence[_Candidate]) -> dict[_Candidate | None, Text]:
        written = self._read(list(dict.fromkeys(one.item[0] for one in candidates)))
        return {one: _text(one, written, self._verdicts.get(one.item, ())) for one in candidates}

    def _entry(self, pair: _Pair, best: Text | None, worst: Text | None) -> Entry:
        scenario, index = pair
        cells = self._cells[index].get(scenario, ())
        candidates = self._matching(TextFilter(), pair)
        return Entry(
            row=self._board.rows[index],
            scores=self._board.grid.rows[index].scores.get(scenario, {}),
            best=best,
            worst=worst,
            texts=len(candidates),
            unscored=sum(one.composite is None for one in candidates),
            failures=tuple(cell.failure for cell in cells if cell.failure is not None),
            empty=sum(cell.is_empty for cell in cells),
        )


def _by_scenario(row: Row) -> dict[str, list[StoredCell]]:
    found: dict[str, list[StoredCell]] = {}
    for cell in row.cells:
        found.setdefault(cell.scenario, []).append(cell)
    return found


def _whole_scenarios(pairs: Sequence[_Pair], most: int) -> Sequence[_Pair]:
    """Return the first pairs, ending with a scenario's last one unless the first scenario alone has too many."""
    taken = pairs[:most]
    if len(pairs) > most and pairs[most][0] != taken[0][0]:
        taken = [pair for pair in taken if pair[0] != pairs[most][0]]
    return taken


def _ends(candidates: Sequence[_Candidate]) -> tuple[_Candidate | None, _Candidate | None]:
    """Return the best text and the worst other one; where none is scored, the first text."""
    scored = [one for one in candidates if one.composite is not None]
    if not scored:
        return next(iter(candidates), None), None
    best = max(scored, key=_value)
    return best, min((one for one in scored if one is not best), key=_value, default=None)


def _value(candidate: _Candidate) -> float:
    return candidate.composite or 0.0


def _none_last(value: float | None, sign: int = 1) -> tuple[bool, float]:
    return value is None, sign * (value or 0.0)


def _text(candidate: _Candidate, written: Mapping[str, StoredCandidates], verdicts: Sequence[Verdict]) -> Text:
    run_id, number = candidate.item
    if run_id not in written or number >= len(written[run_id].texts):
        raise StoredDataDamaged(
            f"candidate {number} of run {run_id} is gone from MLflow; 'tipbench compare --refresh' reads all again"
        )
    first = verdicts[0] if verdicts else None
    scores = {name: fmean(float(one.scores[name]) for one in verdicts) for name in (first.scores if first else ())}
    flags = {name: fmean(float(one.flags[name]) for one in verdicts) for name in (first.flags if first else ())}
    return Text(
        run_id=run_id,
        scenario=candidate.scenario,
        about=written[run_id].scenario,
        text=written[run_id].texts[number],
        composite=candidate.composite,
        scores={**scores, **flags},
        notes=tuple(one.note for one in verdicts if one.note),
    )
