"""Report what users did with a leaderboard's rows: in sentences, as JSON, CSV and Markdown."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tipbench.bench.compare.leaderboard import prompt_label, row_label
from tipbench.bench.compare.messages import figure
from tipbench.bench.records import NextStep
from tipbench.core.text import plural
from tipbench.core.untrusted import csv_text, json_text, markdown_text
from tipbench.server.views.rewards import LEAST_EFFECTIVE, Rewards, ServedRow
from tipbench.statistics.interval import Interval

_MAX_NAMED = 3  # rows named in a sentence


@dataclass(frozen=True)
class RewardsAnswer:
    """Which row users respond to best, whether that can be said, and what to do next."""

    verdict: Literal["best", "open", "too_little"]
    says: str
    next: NextStep


def answer_of(rewards: Rewards) -> RewardsAnswer:
    """Weigh the rewards. A row is called the best only if both its mean and its weighted mean say so."""
    rewarded = sorted((row for row in rewards.rows if row.mean is not None), key=lambda row: -(row.mean or 0.0))
    if not rewarded:
        return _nothing_yet(rewards)
    best, *others = rewarded
    name = row_label(rewards.board, best.row)
    if not others:
        says = f"Only {name} got rewards, {_mean(best)} on average, so there is nothing to compare it with."
        return RewardsAnswer("too_little", says, NextStep("serve another row, too", _tips(rewards, "--top", "2")))
    rivals = [row for row in others if not _is_above(best, row)]
    if rivals:
        may = " and ".join(row_label(rewards.board, row.row) for row in rivals[:_MAX_NAMED])
        more = f" and {len(rivals) - _MAX_NAMED} more" if len(rivals) > _MAX_NAMED else ""
        says = (
            f"It can't be said yet which row users respond to best: {name} has the highest mean, {_mean(best)}, and "
            f"{may}{more} may be as good."
        )
        return RewardsAnswer("open", says, NextStep("go on serving, and look again when more rewards are in"))
    if not _is_best_weighted(best, others):
        few = any(row.weighted.mean is None for row in rewarded)
        why = "too little of that was left to chance" if few else "corrected for that, another row is ahead"
        says = (
            f"{name} has the highest mean reward, {_mean(best)}, but it can't be said that users respond to it best: a "
            f"policy chose what to show, and {why}."
        )
        text = "go on serving with a policy that leaves some choices to chance, such as egreedy, and look again"
        return RewardsAnswer("open", says, NextStep(text))
    says = (
        f"Users respond best to {name}: its mean reward is {_mean(best)}, above all others, also when rewards are "
        "weighted by how likely each choice was."
    )
    return RewardsAnswer("best", says, _after_best(rewards, best, name))


def _nothing_yet(rewards: Rewards) -> RewardsAnswer:
    if not rewards.rows:
        return RewardsAnswer("too_little", headline(rewards), NextStep("write candidates to serve", _tips(rewards)))
    says = f"Nothing can be said yet: {_times(rewards.served)} something was served, and no reward came back."
    return RewardsAnswer("too_little", says, NextStep("have the app report what users did (POST /reward)"))


def _is_above(best: ServedRow, other: ServedRow) -> bool:
    """Return whether the intervals are apart, which is stricter than a test of the difference."""
    return bool(best.interval and other.interval and best.interval.low > other.interval.high)


def _is_best_weighted(best: ServedRow, others: Sequence[ServedRow]) -> bool:
    means = [row.weighted.mean for row in others]
    return best.weighted.mean is not None and all(mean is not None and mean < best.weighted.mean for mean in means)


def _after_best(rewards: Rewards, best: ServedRow, name: str) -> NextStep:
    top = rewards.board.top
    if not top or best.row in top:
        return NextStep(f"keep serving {name}")
    command = shlex.join(("tipbench", "compare", "--experiment", rewards.board.experiment, "--format", "html"))
    text = f"judges rank {row_label(rewards.board, top[0])} higher; read the texts of both before you choose"
    return NextStep(text, f"{command} > report.html")


def _tips(rewards: Rewards, *words: str) -> str:
    named = ("tipbench", "recommend", "tips", "--experiment", rewards.board.experiment, *words)
    return f"{shlex.join(named)} > tips.json"


def _mean(row: ServedRow) -> str:
    within = f" ({row.interval.low:.2f} to {row.interval.high:.2f})" if row.interval else ""
    return f"{row.mean:.2f}{within}"


def headline(rewards: Rewards) -> str:
    """Return how much was served and rewarded."""
    name = rewards.board.experiment
    if not rewards.rows:
        return f"Nothing of '{name}' was served yet: no decision in the log names one of its runs."
    rows = f"{len(rewards.rows)} of {len(rewards.board.rows)} rows of '{name}'"
    return (
        f"{rows} were served, {_times(rewards.served)} to {rewards.users:,} {plural('user', rewards.users)}; "
        f"{_times(rewards.rewarded)} a reward came back."
    )


MAIN_CAVEAT = (
    "A policy chose what to show, so a mean reward also depends on when and to whom a row was shown; only the weighted "
    "mean corrects for that. What got no reward is in neither."
)


def caveats(rewards: Rewards) -> list[str]:
    """Return the limits of what the figures say, the most important first."""
    if not rewards.rows:
        return []
    sentences = [
        MAIN_CAVEAT,
        "Weighted means count each reward by how unlikely its choice was, as if each row had been shown whenever it "
        "was on offer. They need choices that leave something to chance (LinUCB's don't), and an effective sample of "
        f"{LEAST_EFFECTIVE} rewards or more.",
        "Intervals take users for independent of each other, and the rewards of one user for as alike as they look.",
    ]
    if rewards.board.provisional:
        sentences.append("The composites are a rule's: no judge that counts has scored anything yet.")
    return sentences


def left_out(rewards: Rewards) -> list[str]:
    """Describe what was served or rewarded but belongs to no row."""
    sentences = []
    if rewards.elsewhere:
        runs = f"{rewards.elsewhere_runs:,} {plural('run', rewards.elsewhere_runs)}"
        sentences.append(
            f"Not among them: served {_times(rewards.elsewhere)} from {runs} outside of '{rewards.board.experiment}' "
            f"(of another experiment, superseded or deleted)."
        )
    if rewards.without_source:
        sentences.append(f"Not among them: served {_times(rewards.without_source)} without a source.")
    if rewards.rewards_without_decision:
        sentences.append(
            f"{rewards.rewards_without_decision:,} {plural('reward', rewards.rewards_without_decision)} "
            f"can't be assigned: the decisions are not in this log."
        )
    return sentences


def says(rewards: Rewards) -> list[str]:
    return [headline(rewards), *caveats(rewards), *left_out(rewards)]


def as_data(rewards: Rewards) -> dict[str, Any]:
    """Return the report as plain data, as the API sends it."""
    return {
        "experiment": rewards.board.experiment,
        "provisional": rewards.board.provisional,
        "answer": _answer_data(answer_of(rewards)),
        "says": says(rewards),
        "served": rewards.served,
        "users": rewards.users,
        "rewarded": rewards.rewarded,
        "elsewhere": {"served": rewards.elsewhere, "runs": rewards.elsewhere_runs},
        "without_source": rewards.without_source,
        "rewards_without_decision": rewards.rewards_without_decision,
        "least_effective": LEAST_EFFECTIVE,
        "rows": [_row(row) for row in rewards.rows],
    }


def _answer_data(answer: RewardsAnswer) -> dict[str, Any]:
    step = {"text": answer.next.text, "command": answer.next.command}
    return {"verdict": answer.verdict, "says": answer.says, "next": step}


def _row(served: ServedRow) -> dict[str, Any]:
    row = served.row
    return {
        "rank": served.rank,
        "model": row.model,
        "prompt": row.prompt,
        "prompt_digest": row.prompt_digest,
        "settings": dict(row.settings),
        "composite": row.composite,
        "served": served.served,
        "users": served.users,
        "rewarded": served.rewarded,
        "mean_reward": served.mean,
        "low": served.interval.low if served.interval else None,
        "high": served.interval.high if served.interval else None,
        "completed_share": served.completed_share,
        "weighted": {
            "mean": served.weighted.mean,
            "rewards": served.weighted.rewards,
            "effective": served.weighted.effective,
        },
    }


def as_json(rewards: Rewards) -> str:
    return json_text(as_data(rewards))


def as_csv(rewards: Rewards) -> str:
    return csv_text([_flat(_row(row)) for row in rewards.rows]).rstrip("\n")


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    settings = {f"setting.{key}": value for key, value in row.pop("settings").items()}
    weighted = {f"weighted.{key}": value for key, value in row.pop("weighted").items()}
    return {**row, **weighted, **settings}


def as_markdown(rewards: Rewards) -> str:
    answer = answer_of(rewards)
    remarks = [*([headline(rewards)] if rewards.rows else []), *caveats(rewards), *left_out(rewards)]
    lines = [f"**{markdown_text(answer.says)}**", "", f"Next: {markdown_text(str(answer.next))}", ""]
    if rewards.rows:
        lines += [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
        lines += [f"| {' | '.join(map(markdown_text, texts_of(rewards, row)))} |" for row in rewards.rows]
        lines.append("")
    return "\n".join([*lines, *(f"- {markdown_text(text)}" for text in remarks)]).rstrip("\n")


COLUMNS = (
    "#",
    "model",
    "prompt",
    "composite",
    "served",
    "users",
    "rewarded",
    "mean reward",
    "95 %",
    "completed",
    "weighted mean",
    "effective sample",
)


def texts_of(rewards: Rewards, served: ServedRow) -> tuple[str, ...]:
    """Return a row's text for each of COLUMNS."""
    return (
        str(served.rank),
        served.row.model,
        prompt_label(rewards.board, served.row),
        figure(served.row.composite),
        f"{served.served:,}",
        f"{served.users:,}",
        f"{served.rewarded:,}",
        figure(served.mean),
        span(served.interval),
        share(served.completed_share),
        figure(served.weighted.mean),
        f"{served.weighted.effective:,.0f}" if served.weighted.rewards else "–",
    )


def span(interval: Interval | None) -> str:
    """Format an interval with two decimals, since rewards lie between -1 and 1."""
    return f"{interval.low:.2f} – {interval.high:.2f}" if interval else "–"


def share(value: float | None) -> str:
    """Format a share of counts as a percentage."""
    return "–" if value is None else f"{value:.0%}".replace("%", " %")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


FORMATS: Mapping[str, Callable[[Rewards], str]] = {"json": as_json, "csv": as_csv, "markdown": as_markdown}
