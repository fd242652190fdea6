"""What users did with a leaderboard's rows, in sentences, as JSON, CSV and Markdown."""

from collections.abc import Callable, Mapping
from typing import Any

from tipbench.bench.compare.messages import figure, prompt_label
from tipbench.core.text import plural
from tipbench.core.untrusted import csv_text, json_text, markdown_text
from tipbench.server.views.rewards import LEAST_EFFECTIVE, EarnedRow, Rewards
from tipbench.statistics.bounded import Interval


def headline(rewards: Rewards) -> str:
    name = rewards.board.experiment
    if not rewards.rows:
        return (
            f"Nothing of '{name}' was served yet: no decision in the log names one of its runs. "
            f"'tipbench recommend tips' writes candidates that do."
        )
    rows = f"{len(rewards.rows)} of {len(rewards.board.rows)} rows of '{name}'"
    return (
        f"{rows} were served, {_times(rewards.served)} to {rewards.users:,} {plural('user', rewards.users)}; "
        f"{_times(rewards.rewarded)} a reward came back."
    )


def caveats(rewards: Rewards) -> list[str]:
    """What the figures can't tell."""
    if not rewards.rows:
        return []
    told = [
        "A policy chose what to show, so a mean reward also depends on when and to whom a row was shown: rows can't be "
        "compared by it. Nor does it count what got no reward.",
        "Weighted means count each reward by how unlikely its choice was, as if each row had been shown whenever it "
        "was on offer. They need choices that leave something to chance (LinUCB's don't), and an effective sample of "
        f"{LEAST_EFFECTIVE} rewards or more.",
        "Intervals take users for independent of each other, and the rewards of one user for as alike as they look.",
    ]
    if rewards.board.provisional:
        told.append("The composites are a rule's: no counted judge has scored anything yet.")
    return told


def left_out(rewards: Rewards) -> list[str]:
    """What was served and stands in no row."""
    told = []
    if rewards.elsewhere:
        runs = f"{rewards.elsewhere_runs:,} {plural('run', rewards.elsewhere_runs)}"
        told.append(
            f"Not among them: served {_times(rewards.elsewhere)} from {runs} outside of '{rewards.board.experiment}' "
            f"(of another experiment, set aside or deleted)."
        )
    if rewards.without_source:
        told.append(f"Not among them: served {_times(rewards.without_source)} without a source.")
    if rewards.rewards_alone:
        told.append(
            f"{rewards.rewards_alone:,} {plural('reward', rewards.rewards_alone)} can't be told from where: the "
            f"decisions are not in this log."
        )
    return told


def says(rewards: Rewards) -> list[str]:
    return [headline(rewards), *caveats(rewards), *left_out(rewards)]


def as_data(rewards: Rewards) -> dict[str, Any]:
    """Plain values; what the API answers with."""
    return {
        "experiment": rewards.board.experiment,
        "provisional": rewards.board.provisional,
        "says": says(rewards),
        "served": rewards.served,
        "users": rewards.users,
        "rewarded": rewards.rewarded,
        "elsewhere": {"served": rewards.elsewhere, "runs": rewards.elsewhere_runs},
        "without_source": rewards.without_source,
        "rewards_without_decision": rewards.rewards_alone,
        "least_effective": LEAST_EFFECTIVE,
        "rows": [_row(row) for row in rewards.rows],
    }


def _row(earned: EarnedRow) -> dict[str, Any]:
    row = earned.row
    return {
        "rank": earned.rank,
        "model": row.model,
        "prompt": row.prompt,
        "prompt_digest": row.prompt_digest,
        "settings": dict(row.settings),
        "composite": row.composite,
        "served": earned.served,
        "users": earned.users,
        "rewarded": earned.rewarded,
        "mean_reward": earned.mean,
        "low": earned.interval.low if earned.interval else None,
        "high": earned.interval.high if earned.interval else None,
        "completed_share": earned.completed_share,
        "weighted": {
            "mean": earned.weighted.mean,
            "rewards": earned.weighted.rewards,
            "effective": earned.weighted.effective,
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
    says_below = [*caveats(rewards), *left_out(rewards)]
    lines = [f"**{markdown_text(headline(rewards))}**", ""]
    if rewards.rows:
        lines += [f"| {' | '.join(COLUMNS)} |", f"|{'---|' * len(COLUMNS)}"]
        lines += [f"| {' | '.join(map(markdown_text, texts_of(rewards, row)))} |" for row in rewards.rows]
        lines.append("")
    return "\n".join([*lines, *(f"- {markdown_text(text)}" for text in says_below)]).rstrip("\n")


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


def texts_of(rewards: Rewards, earned: EarnedRow) -> tuple[str, ...]:
    """A row as people read it, a text for each column."""
    return (
        str(earned.rank),
        earned.row.model,
        prompt_label(rewards.board, earned.row),
        figure(earned.row.composite),
        f"{earned.served:,}",
        f"{earned.users:,}",
        f"{earned.rewarded:,}",
        figure(earned.mean),
        span(earned.interval),
        share(earned.completed_share),
        figure(earned.weighted.mean),
        f"{earned.weighted.effective:,.0f}" if earned.weighted.rewards else "–",
    )


def span(interval: Interval | None) -> str:
    """With two digits: rewards lie between -1 and 1."""
    return f"{interval.low:.2f} – {interval.high:.2f}" if interval else "–"


def share(counted: float | None) -> str:
    """Of what was counted, so that nothing and everything are what they are."""
    return "–" if counted is None else f"{counted:.0%}".replace("%", " %")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


FORMATS: Mapping[str, Callable[[Rewards], str]] = {"json": as_json, "csv": as_csv, "markdown": as_markdown}
