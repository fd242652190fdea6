"""The answer that a leaderboard gives: what its scores decide, what picking the leader now costs, and what to do next.

Made here once; the terminal, the report, the pages, JSON and the DAG's log all show this one.
"""

import shlex
from dataclasses import dataclass
from typing import Any, Literal

from tipbench.bench.compare.comparison import too_few
from tipbench.bench.compare.leaderboard import Leaderboard, row_label
from tipbench.bench.compare.leaderboard_row import LeaderboardRow
from tipbench.bench.records import LEAST_AGREEMENT, SECONDS_A_JUDGEMENT, NextStep, experiment_command
from tipbench.bench.tracking.decisions import DecisionSummary
from tipbench.core.text import capital, duration, plural
from tipbench.core.untrusted import printable
from tipbench.statistics.planning import units_to_separate

Verdict = Literal["winner", "open", "too_little"]
PRACTICALLY_EQUAL = 0.15  # points that picking the leader may be expected to lose
FEW_UNITS = 16  # with fewer, the true loss was measured to be up to twice the expected one
_MANY = 1_000  # scenarios: nobody writes and judges that many
NOTHING_JUDGED = "No answer yet: nothing is judged."
_OF_A_DECISION = 300  # judgements: what one among 12 rows took to lose at most 0.15 points (docs/deciding.md)


@dataclass(frozen=True)
class BoardAnswer:
    """What the scores decide."""

    verdict: Verdict
    says: str  # the answer in a sentence or two
    leader: LeaderboardRow | None
    runner_up: LeaderboardRow | None
    expected_loss: float | None  # points that picking the leader now loses on average; None: that can't be estimated
    next: NextStep

    @property
    def sentences(self) -> tuple[str, str]:
        """The answer and the step, as everybody shows them."""
        return self.says, f"Next: {self.next}"


def answer_of(board: Leaderboard) -> BoardAnswer:
    """Weigh a leaderboard: the evidence first, then what it would cost to have more."""
    if board.decision and not board.provisional:
        return _decided(board, board.decision)
    scored = [row for row in board.rows if row.composite is not None]
    leader, runner_up = (*scored[:2], None, None)[:2]
    verdict = _verdict(board)
    loss = None if board.provisional else board.comparison.expected_loss
    says = {"winner": _winner, "open": _open, "too_little": _too_little}[verdict](board) + _disagreement(board)
    if board.is_by_code:
        says += " Scores are by code: no judge has read a text."
    return BoardAnswer(verdict, says, leader, runner_up, loss, _next_step(board, verdict))


def _decided(board: Leaderboard, decision: DecisionSummary) -> BoardAnswer:
    """Return the answer of a decision in rounds, as it was last looked at."""
    by_name = {f"{row.model} × {row.prompt}": row for row in board.rows}
    others = [by_name[name] for name in decision.rows if name != decision.pick and name in by_name]
    command = None if decision.decided else experiment_command(board.experiment, "decide")
    return BoardAnswer(
        verdict="winner" if decision.proven else "open" if decision.pick else "too_little",
        says=decision.says,
        leader=by_name.get(decision.pick),
        runner_up=others[0] if decision.pick and others else None,
        expected_loss=decision.expected_loss,
        next=NextStep(decision.next, command, decision.likely_left),
    )


def _verdict(board: Leaderboard) -> Verdict:
    if board.provisional or not board.top:
        return "too_little"
    return "winner" if len(board.top) == 1 else "open"


def is_practically_equal(board: Leaderboard) -> bool:
    loss = board.comparison.expected_loss
    return _verdict(board) == "open" and loss is not None and loss <= PRACTICALLY_EQUAL


# The answer in words.


def _winner(board: Leaderboard) -> str:
    best = f"{row_label(board, board.top[0])} is the best of {_compared(board)} variants{_where(board)}"
    how = "" if board.comparison.winner is None else f" It {beats_others(board)}."
    return f"{best}: {_interval(board.top[0])}.{how} {_runner_up(board)}".rstrip()


def beats_others(board: Leaderboard) -> str:
    """Say what the test of the leader has shown of a proven winner."""
    others = "the other" if _compared(board) == 2 else "each of the others"
    unit = board.comparison.unit
    return f"beats {others} by more than chance explains, compared {unit} by {unit}"


def _open(board: Leaderboard) -> str:
    leader = row_label(board, board.rows[0])
    all_of_two = len(board.top) == _compared(board) == 2
    which = "both variants" if all_of_two else f"{len(board.top)} of {_compared(board)} variants"
    if is_practically_equal(board):
        return (
            f"{capital(which)} are practically equal{_where(board)}: {leader} has the highest mean, "
            f"{_interval(board.rows[0])}, and picking it now is expected to lose {_loss(board)}."
        )
    return (
        f"Undecided: {which} may be the best{_where(board)}. {leader} leads with {_interval(board.rows[0])}; "
        f"picking it now is expected to lose {_loss(board)}."
    )


def _too_little(board: Leaderboard) -> str:
    cells = sum(row.cells for row in board.rows)
    if board.failed and board.failed == cells:
        return f"No answer yet: all {cells} cells failed, the first with: {first_failure(board)}."
    if board.provisional and board.judges:
        leader = f" They rank {row_label(board, board.rows[0])} first." if board.rows[0].composite is not None else ""
        begin = "No answer from these" if board.has_counted_scores else "No answer yet"
        return f"{begin}: scores come from simple rules, which don't count.{leader}"
    if not board.judges and board.quarantined:
        return f"No answer yet: the scores of {' and '.join(board.quarantined)} are on hold and don't count."
    scored = [row for row in board.rows if row.composite is not None and row.scored > row.empty]
    if not scored:
        return NOTHING_JUDGED
    if _compared(board) > 1:
        return too_few(_compared(board), board.comparison.units, board.comparison.unit)
    if sum(row.composite is not None for row in board.rows) > 1:
        return "No answer yet: the variants were judged on different scenarios, so they can't be compared."
    return f"Only {row_label(board, scored[0])} has scores, so there is nothing to compare it with."


def first_failure(board: Leaderboard) -> str:
    return printable(next(cell.failure for row in board.grid.rows for cell in row.cells if cell.failure), 200)


def _compared(board: Leaderboard) -> int:
    return sum(row.rank is not None for row in board.rows)


def _where(board: Leaderboard) -> str:
    """For whom it holds, where that is not for scenarios of this kind in general."""
    clusters = board.comparison.clusters
    return f" for these {clusters} {plural(board.grid.unit_name, clusters)}" if clusters else ""


def _interval(row: LeaderboardRow) -> str:
    interval = row.intervals.get("composite")
    within = f" ({interval.low:.1f} to {interval.high:.1f})" if interval else ""
    return f"{row.composite:.2f}{within}"


def _runner_up(board: Leaderboard) -> str:
    second = board.rows[1] if len(board.rows) > 1 else None
    if second is None or second.composite is None:
        return ""
    return f"The runner-up is {row_label(board, second)} with {_interval(second)}."


def _loss(board: Leaderboard) -> str:
    """The expected loss, with how far it may be off."""
    loss = board.comparison.expected_loss
    if loss is None:
        return "an amount that can't be estimated"
    amount = "less than 0.01 points" if loss < 0.01 else f"about {loss:.2f} points"
    if board.comparison.at_the_end_of_the_scale:
        return f"{amount}, possibly three times that, because most scores are at the end of the scale"
    return f"{amount}, possibly twice that" if board.comparison.independent_units < FEW_UNITS else amount


def _disagreement(board: Leaderboard) -> str:
    if not board.judges_disagree:
        return ""
    return (
        f" But the judges disagree (α {board.agreement:.2f}, and below {LEAST_AGREEMENT} a mean of their scores says "
        "little), so don't rely on this yet."
    )


# What to do next.


def _next_step(board: Leaderboard, verdict: Verdict) -> NextStep:
    cells = sum(row.cells for row in board.rows)
    if board.failed and board.failed == cells:
        return NextStep("find out why, then run the same 'tipbench collect' again with --retry-failed")
    if board.judges_disagree:
        status = experiment_command(board.experiment, "judge", "--status")
        return NextStep("have the judges read the rubric together; see what they disagree on", status)
    if verdict == "winner":
        best = row_label(board, board.top[0])
        return NextStep(f"ship {best}, after a look at its weakest texts", _report(board), 0, reads_texts=True)
    if is_practically_equal(board):
        return _choose_by_cost(board)
    if board.provisional and board.has_counted_scores:
        return NextStep("see the scores that count", experiment_command(board.experiment, "compare"))
    if board.quarantined:
        who = " and ".join(board.quarantined)
        return NextStep(
            f"see why the scores of {who} are on hold", experiment_command(board.experiment, "judge", "--status")
        )
    if board.pending:
        return judge_next(board.experiment, board.pending)
    if board.failed:
        failed = f"{board.failed} {plural('cell', board.failed)} failed"
        return NextStep(f"{failed}; run the same 'tipbench collect' again with --retry-failed")
    return _more_scenarios(board)


def judge_next(experiment: str, pending: int) -> NextStep:
    """Return the step to take where cells wait for a judge."""
    command = experiment_command(experiment, "judge", "--export", "judge.json", "--sample", "1")
    return NextStep(f"judge {pending} {plural('cell', pending)}, about {_time(pending)}", command, pending)


def _choose_by_cost(board: Leaderboard) -> NextStep:
    timed = [row for row in board.top if row.cost.seconds is not None]
    if not timed:
        return NextStep(
            f"choose by cost, or take {row_label(board, board.rows[0])}", _report(board), 0, reads_texts=True
        )
    quickest = min(timed, key=lambda row: row.cost.seconds or 0.0)
    text = f"choose by cost: the quickest is {row_label(board, quickest)}, {quickest.cost.seconds:.1f} s a cell"
    return NextStep(text, _report(board), 0, reads_texts=True)


def _more_scenarios(board: Leaderboard) -> NextStep:
    """More of what evidence comes from, where everything that there is has been judged."""
    compared, comparison = _compared(board), board.comparison
    if compared < 2:
        return NextStep(
            "collect another model or prompt to compare with", experiment_command(board.experiment, "collect", "--help")
        )
    needed = comparison.needed
    lacking = units_to_separate(compared) - comparison.units if not comparison.separable else 0
    more = lacking if lacking > 0 else needed.more_scenarios if needed and needed.more_scenarios else 0
    if not more or more > _MANY:
        return NextStep(
            f"more scenarios would hardly decide it; choose by cost, or take {row_label(board, board.rows[0])}",
            _report(board),
            reads_texts=True,
        )
    judgements = 0 if board.is_by_code else more * compared
    if judgements > _OF_A_DECISION and (rounds := _decide_in_rounds(board, judgements)):
        return rounds
    cost = "" if board.is_by_code else f"judge about {judgements:,} more, {_time(judgements)}: "
    text = (
        f"{cost or 'collect '}{more} new {plural('scenario', more)}"
        f"{_of_new_units(board, more)} for {compared} variants; 'tipbench suite --help' says how to add scenarios"
    )
    return NextStep(text, None, judgements)


def _decide_in_rounds(board: Leaderboard, judgements: int) -> NextStep | None:
    """What takes far fewer judgements, where a suite has a pool of scenarios for it."""
    from tipbench.bench.suites.load import pool_of  # brings template engines

    pool = pool_of(board.rubric_digest)
    if pool is None:
        return None
    rows = [row for row in board.rows if row.composite is not None]
    models, prompts = (
        ",".join(dict.fromkeys(names)) for names in zip(*((r.model, r.prompt) for r in rows), strict=True)
    )
    return NextStep(
        f"decide it in rounds on the scenarios of {pool}: about {_OF_A_DECISION} judgements, "
        f"{_time(_OF_A_DECISION)}, find one that is good enough, where this way would take {judgements:,}",
        shlex.join(("tipbench", "decide", "--suite", pool, "--models", models, "--prompts", prompts)),
        _OF_A_DECISION,
    )


def _of_new_units(board: Leaderboard, more: int) -> str:
    unit = board.grid.unit_name
    return "" if unit == "scenario" else f" of new {plural(unit, more)}"


def _time(judgements: int) -> str:
    return duration(judgements * SECONDS_A_JUDGEMENT)


def _report(board: Leaderboard) -> str:
    return experiment_command(board.experiment, "compare", "--format", "html") + " > report.html"


def as_data(answer: BoardAnswer) -> dict[str, Any]:
    """The answer as JSON has it."""
    return {
        "verdict": answer.verdict,
        "says": answer.says,
        "leader": _row(answer.leader),
        "runner_up": _row(answer.runner_up),
        "expected_loss": answer.expected_loss,
        "next": {
            "text": answer.next.text,
            "command": answer.next.command,
            "judgements": answer.next.judgements,
        },
    }


def _row(row: LeaderboardRow | None) -> dict[str, Any] | None:
    if row is None:
        return None
    interval = row.intervals.get("composite")
    return {
        "model": row.model,
        "prompt": row.prompt,
        "prompt_digest": row.prompt_digest,
        "composite": row.composite,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
    }
