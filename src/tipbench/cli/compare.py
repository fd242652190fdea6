"""`tipbench compare`: phase C."""

import time
from collections import Counter
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from tipbench.bench.bench import Bench
from tipbench.bench.compare.against import ExperimentComparison, compare_against
from tipbench.bench.compare.against import as_markdown as against_as_markdown
from tipbench.bench.compare.check import CheckResult, check_against, check_row
from tipbench.bench.compare.check import require_evidence as evidence_required
from tipbench.bench.compare.ci_files import as_junit, as_summary, check_output_file
from tipbench.bench.compare.leaderboard import Leaderboard, leaderboard_of
from tipbench.bench.compare.messages import FORMATS
from tipbench.bench.compare.rows import Rows, make_rows
from tipbench.bench.compare.scores import all_scores, check_scores_file, write_scores
from tipbench.bench.compare.snapshot import Snapshot, rubric_of
from tipbench.bench.suites.rubric import Rubric
from tipbench.cli.against import AGAINST_FORMATS, show_against
from tipbench.cli.console import bench_of, err, note, out
from tipbench.cli.flags import gather, option_flags
from tipbench.cli.leaderboard import check_factor, show_leaderboard, show_slices
from tipbench.core.errors import InvalidInput
from tipbench.core.files import write_user_file
from tipbench.core.text import utc_minute
from tipbench.core.untrusted import printable

_MAX_GAIN = 10_000  # points
_TOO_LITTLE = 3  # exit status where evidence is required and there is too little


@click.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench compare --experiment tip-bench-first\n"
    "  tipbench compare --experiment tip-bench-first --by persona\n"
    "  tipbench compare --experiment tip-bench-first --format html > report.html\n"
    "  tipbench compare --experiment tip-bench-first --scores scores.csv\n"
    "  tipbench compare --experiment tip-bench-second --against tip-bench-first\n"
    '  tipbench compare --experiment tip-bench-first --gate "qwen2.5:1.5b×v3-few-shot" --min-gain -0.5 \\\n'
    "    --require-evidence --junit tipbench.xml --summary summary.md"
)
@option_flags("experiment", "mlflow_url")
@click.option("--suite", help="Use this suite's rubric instead of the one stored with the experiment.")
@click.option(
    "--format", "form", type=click.Choice(["table", *FORMATS, "html"]), default="table", help="[default: table]"
)
@click.option(
    "--by", metavar="FACTOR", help="Also show each row's composite by the levels of this factor of the suite."
)
@click.option("--against", metavar="OTHER", help="Compare each row with the same row of another experiment instead.")
@click.option(
    "--gate",
    "named",
    metavar="MODEL×PROMPT",
    help="Exit with 1 if evidence says that this row is worse than the best other row; with --against, than before.",
)
@click.option(
    "--min-gain",
    type=float,
    metavar="X",
    help="With --gate: how many points ahead it has to be; below 0: how many it may lose.  [default: 0]",
)
@click.option(
    "--require-evidence",
    is_flag=True,
    help="With --gate: exit with 3 unless evidence says that the row is ahead by --min-gain.",
)
@click.option(
    "--junit",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="With --gate: also write the result to this file as JUnit XML.",
)
@click.option(
    "--summary",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write a summary in Markdown to this file, as for a pull request.",
)
@click.option(
    "--scores",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write every score, and each cell's resulting score, to this .csv or .json file.",
)
@click.option("--provisional", is_flag=True, help="Show provisional scores (by rules) although others count.")
@click.option("--verbose", "-v", is_flag=True, help="All columns, effects and caveats.")
@click.option("--refresh", is_flag=True, help="Ignore the cache, for example after a change in MLflow's own pages.")
def command(
    suite: str | None,
    form: str,
    by: str | None,
    against: str | None,
    named: str | None,
    min_gain: float | None,
    require_evidence: bool,
    junit: Path | None,
    summary: Path | None,
    scores: Path | None,
    verbose: bool,
    provisional: bool,
    refresh: bool,
    **given: Any,
) -> int:
    """See which model and prompt is best, how sure that is, and what to do next: phase C.

    Rows that are shown to be worse than the best are faded; --verbose marks those that may be the best with ●. Cells
    that failed or wait for a judge are counted, never dropped. Provisional scores are shown, and marked as such, only
    while no judge that counts has scored anything.

    Exit status: 0 done, and the row of --gate has not lost; 1 it lost; 3 too little is known (--require-evidence);
    2 refused.
    """
    options = gather(given, suite=suite)
    if scores:
        check_scores_file(scores)
    _check_flags(form, by, against, named, min_gain)
    if not named and (require_evidence or junit):
        flag = "--junit" if junit else "--require-evidence"
        raise InvalidInput(f"{flag} goes with --gate, which names the row to check")
    for path in (junit, summary):
        if path:
            check_output_file(path)
    if provisional and (against or named):
        raise InvalidInput("--provisional shows one experiment's leaderboard; leave --against and --gate out")
    with bench_of(options) as bench:
        snapshot = bench.snapshot(refresh)
        rubric = bench.rubric_for(snapshot)
        board = leaderboard_of(snapshot, rubric, provisional)
        if not provisional:
            bench.publish_answer(snapshot, board)
        if against and board.decision:
            raise InvalidInput(f"'{board.experiment}' holds a decision in rounds, and --against tests a fixed sample")
        before = _rows_of(bench, against, rubric, refresh) if against else None
        check_result = _check(board, named, min_gain or 0.0, against, before) if named else None
        if check_result and require_evidence:
            check_result = evidence_required(check_result)
        if by:
            check_factor(board, by)
        if check_result:
            _show_check_result(check_result, out if form == "table" else err)
        changes = _changes(board, against, before, bool(check_result)) if against and before else None
        if against:
            if changes:
                show_against(changes, form)
        elif form == "html":
            _echo_html(bench, snapshot, rubric, board)
        else:
            show_leaderboard(board, form, verbose)
        if by:
            show_slices(board, by)
        if junit and check_result:
            write_user_file(junit, as_junit(board, check_result, require_evidence))
        if summary:
            text = against_as_markdown(changes) if changes else None
            write_user_file(summary, as_summary(board, check_result, text))
        if scores:
            lines = all_scores(bench.store, snapshot, rubric)
            write_scores(scores, lines)
            kinds = Counter(line["kind"] for line in lines)
            note(
                f"Written to {scores}: {kinds['judge']} scores by judges, {kinds['empty']} empty answers, and "
                f"{kinds['cell']} cells' resulting scores (kind = cell), which the leaderboard's means come from."
            )
    return _status(check_result, require_evidence)


def _status(check_result: CheckResult | None, require_evidence: bool) -> int:
    if check_result and check_result.outcome == "lost":
        return 1
    return _TOO_LITTLE if check_result and check_result.outcome == "open" and require_evidence else 0


def _check_flags(form: str, by: str | None, against: str | None, named: str | None, min_gain: float | None) -> None:
    """Reject flags that make no sense, before anything is read.

    An empty value is an error, too: it may be an unset shell variable, not the wish to leave the flag out.
    """
    for flag, value in (("--by", by), ("--against", against), ("--gate", named)):
        if value is not None and not value.strip():
            raise InvalidInput(f"{flag} is empty; give a value, or leave the flag out")
    if min_gain is not None and not named:
        raise InvalidInput("--min-gain goes with --gate, which names the row that has to gain")
    if min_gain is not None and not -_MAX_GAIN <= min_gain <= _MAX_GAIN:  # rejects nan, too
        raise InvalidInput(f"--min-gain {min_gain} must be a number of points from -{_MAX_GAIN} to {_MAX_GAIN}")
    if against and form not in AGAINST_FORMATS:
        raise InvalidInput(f"--against has no --format {form}; take one of {', '.join(AGAINST_FORMATS)}")
    if by and (against or form != "table"):
        raise InvalidInput("--by goes with the table of one experiment; --format json and html hold all factors anyway")


def _rows_of(bench: Bench, other: str, rubric: Rubric, refresh: bool) -> Rows:
    snapshot = bench.scored_by_code(bench.snapshot_of(bench.store.experiment(other), refresh), rubric)
    theirs = rubric_of(snapshot)
    if theirs.digest != rubric.digest and not rubric.by_code:
        raise InvalidInput(
            f"'{other}' is judged by another rubric ({theirs.name} {theirs.digest[:12]} instead of {rubric.name} "
            f"{rubric.digest[:12]}), so its scores mean something else; judge one of the two again"
        )
    return make_rows(snapshot.cells, rubric)


def _changes(board: Leaderboard, other: str, before: Rows, has_result: bool) -> ExperimentComparison | None:
    """Return the changes. With a gate, which has its result anyway, a failure to compare is only a note."""
    try:
        return compare_against(board.experiment, board.grid, other, before)
    except InvalidInput as error:
        if not has_result:
            raise
        note(str(error))
        return None


def _check(board: Leaderboard, named: str, min_gain: float, other: str | None, before: Rows | None) -> CheckResult:
    if other and before:
        return check_against(board, named, min_gain, other, before)
    return check_row(board, named, min_gain)


def _show_check_result(check_result: CheckResult, console: Console) -> None:
    """Print the gate's result, to a console that is separate from what may be piped."""
    style = {"held": "green", "lost": "bold red", "open": "yellow"}[check_result.outcome]
    console.print(f"Gate: {printable(check_result.sentence)}", style=style, soft_wrap=True)


def _echo_html(bench: Bench, snapshot: Snapshot, rubric: Rubric, board: Leaderboard) -> None:
    from tipbench.bench.compare.html.page import as_html
    from tipbench.bench.report import make_report  # imports the judges, too

    made_at, home = utc_minute(time.time() * 1000), bench.context.settings.home
    click.echo(as_html(make_report(bench.store, snapshot, rubric, board, made_at, home)))
