"""What a decision says: in sentences, and as data."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tipbench.core.text import counted
from tipbench.statistics.betting import Claim, Decision, Rules, judgements_to_decide

_LEVEL = "wrong at most 5 times in 100"


@dataclass(frozen=True)
class Verdict:
    """A decision's state with the names of its rows, in points of its own scale."""

    rows: tuple[str, ...]
    rules: Rules
    scale: tuple[float, float]
    state: Decision
    restarts: int = 0
    at_an_end: bool = False  # most scores are at an end of the scale, so the expected loss is too low
    stopped: str = ""  # why it does not go on although nothing is decided, such as "the pool is used up"

    @property
    def is_decided(self) -> bool:
        return self.state.is_over

    @property
    def is_proven(self) -> bool:
        return self.state.winner is not None

    @property
    def pick(self) -> str:
        """The row to take if somebody has to choose now."""
        return self.rows[self.state.leader if self.state.winner is None else self.state.winner]

    @property
    def expected_loss(self) -> float | None:
        """Points that picking the leader now loses on average."""
        loss = self.state.expected_loss
        return None if loss is None else loss * (self.scale[1] - self.scale[0])

    @property
    def likely_left(self) -> int | None:
        """Judgements that are likely to be needed still; None if that can't be said yet."""
        return 0 if self.is_decided else judgements_to_decide(self.state, self.rules)

    @property
    def loss(self) -> str:
        """The expected loss in words."""
        if self.expected_loss is None:
            return "an amount that can't be estimated"
        if self.at_an_end:
            amount = _amount(self.expected_loss)
            return f"{amount}, possibly three times that, because most scores are at the end of the scale"
        return _points(self.expected_loss)

    @property
    def says(self) -> str:
        if self.is_proven:
            return _proven(self.pick, len(self.rows), self.rules, self.restarts)
        if self.state.items == 0:
            return f"Nothing is judged yet: {len(self.rows)} rows are in."
        if self.is_decided:
            return (
                f"Take {self.pick}: picking it is expected to lose {self.loss}. That it is the best is not proven: "
                f"{self._rows_left()} may be."
            )
        return (
            f"Undecided: {self._rows_left()} may be the best. {self.pick} leads; picking it now is expected to lose "
            f"{self.loss}."
        )

    @property
    def next(self) -> str:
        """What to do now."""
        if self.is_decided:
            return f"take {self.pick}"
        if self.stopped:
            return f"{self.stopped}; {f'take {self.pick}, or ' if self.state.items else ''}go on with more"
        likely = self.likely_left
        more = "" if likely is None else f", some {likely:,} more judgements are likely to settle it"
        return f"judge the next batch{more}"

    @property
    def in_short(self) -> str:
        """Where it stands, in one line for a log: who leads, who is out, what picking now costs, what is left."""
        state = self.state
        out = sum(one is not None for one in state.out_after)
        parked = f", {int(state.parked.sum())} not judged for now" if state.parked.any() else ""
        loss = (
            "" if self.expected_loss is None else f"; picking it now is expected to lose {_points(self.expected_loss)}"
        )
        likely = f"; some {self.likely_left:,} more judgements are likely" if self.likely_left else ""
        return (
            f"After {counted(state.items, 'item')} and {counted(state.judgements, 'judgement')}: {self.pick} leads, "
            f"{out} of {counted(len(self.rows), 'row')} out{parked}{loss}{likely}."
        )

    @property
    def other_account(self) -> str:
        """What the account of the other claim says by now."""
        other: Claim = "new" if self.rules.claim == "pool" else "pool"
        wealth = self.state.wealth[other]
        out = int((wealth >= self.rules.wealth).sum())
        what = "new scenarios of this kind" if other == "new" else "the answers of this pool"
        return f"By the account about {what}, {out} of {counted(len(self.rows), 'row')} would be out by now."

    @property
    def _good_enough(self) -> float:
        return self.rules.good_enough * (self.scale[1] - self.scale[0])

    def _rows_left(self) -> str:
        left = len(self.state.left)
        if left == len(self.rows):
            return "both rows" if left == 2 else f"all {left} rows"
        return f"{left} of {counted(len(self.rows), 'row')}"

    def as_data(self) -> dict[str, Any]:
        state = self.state
        return {
            "winner": self.pick if self.is_decided else None,
            "proven": self.is_proven,
            "says": self.says,
            "next": self.next,
            "other_account": self.other_account,
            "stopped": self.stopped,
            "leader": self.pick if state.items else None,
            "judgements": state.judgements,
            "items": state.items,
            "claim": self.rules.claim,
            "expected_loss": self.expected_loss,
            "good_enough": self._good_enough,
            "likely_left": self.likely_left,
            "restarts": self.restarts,
            "wealth_needed": self.rules.wealth,
            "rows": [
                {
                    "row": name,
                    "out_after": state.out_after[number],
                    "parked": bool(state.parked[number]),
                    "state": _state(self, number),
                    "judged": state.judged[number],
                    "mean": _mean(state.means[number], self.scale),
                    "wealth": {claim: _finite(values[number]) for claim, values in state.wealth.items()},
                }
                for number, name in enumerate(self.rows)
            ],
        }


def _proven(name: str, rows: int, rules: Rules, restarts: int) -> str:
    # Wealths of 20, 40, 80, … allow for an error of 1/20 + 1/40 + …, which is less than 1/10.
    level = "wrong at most 10 times in 100, because accounts were started over" if restarts else _LEVEL
    if rules.claim == "new":
        return (
            f"{name} is the best of {rows} on new scenarios of this kind; such claims are {level}, if scenarios are a "
            "random sample."
        )
    return (
        f"Of the {rules.pool} answers of each row, {name}'s are the best on average ({level}). Not a claim about "
        "other scenarios."
    )


def _points(loss: float) -> str:
    return _amount(loss) if loss < 0.01 else f"{_amount(loss)}, possibly twice that"


def _amount(loss: float) -> str:
    return "less than 0.01 points" if loss < 0.01 else f"about {loss:.2f} points"


def _mean(value: float, scale: tuple[float, float]) -> float | None:
    return None if np.isnan(value) else float(scale[0] + value * (scale[1] - scale[0]))


def _finite(value: float) -> float | None:
    """Return the wealth; None if it is infinite: the row is certainly out."""
    return float(value) if np.isfinite(value) else None


def rules_for(claim: Claim, pool: int, good_enough: float, scale: tuple[float, float], wealth: float) -> Rules:
    """Return the rules with the loss that is good enough as a share of the scale."""
    return Rules(claim, pool, wealth, good_enough / (scale[1] - scale[0]))


def table(verdict: Verdict) -> Sequence[tuple[str, str, str, str]]:
    """Return a line per row, best first: name, mean, judged items, state."""
    state = verdict.state
    order = sorted(range(len(verdict.rows)), key=lambda row: (state.out_after[row] is not None, -_sortable(state, row)))
    return [
        (verdict.rows[row], _shown(state.means[row], verdict.scale), str(state.judged[row]), _state(verdict, row))
        for row in order
    ]


def _sortable(state: Decision, row: int) -> float:
    return -np.inf if np.isnan(state.means[row]) else float(state.means[row])


def _shown(mean: float, scale: tuple[float, float]) -> str:
    value = _mean(mean, scale)
    return "–" if value is None else f"{value:.2f}"


def _state(verdict: Verdict, row: int) -> str:
    state = verdict.state
    if state.out_after[row] is not None:
        return f"out after {state.out_after[row]} items"
    if state.winner == row:
        return "the winner"
    if state.parked[row]:
        return "hopeless, not judged for now"
    if row == state.leader and state.items:
        return "leads"
    wealth = state.wealth[verdict.rules.claim][row]
    return f"in; evidence against it {wealth:.1f} of {verdict.rules.wealth:g}"
