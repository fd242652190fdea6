"""Report what users did with a leaderboard's rows: in sentences, as JSON, CSV and Markdown."""

from collections.abc import Callable, Mapping
from typing import Any

from tipbench.bench.compare.leaderboard import prompt_label
from tipbench.bench.compare.messages import figure
from tipbench.core.text import plural
from tipbench.core.untrusted import csv_text, json_text, markdown_text
from tipbench.server.views.rewards import LEAST_EFFECTIVE, Rewards, ServedRow
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
    """Return the limits of what the figures say."""
    if not rewards.rows:
        return []
    sentences = [
        "A policy chose what to show, so a mean reward also depends on when and to whom a row was shown: rows can't be "
        "compared by it. Nor does it count what got no reward.",
        "Weighted means count each reward by how unlikely its choice was, as if each row had been shown whenever it "
        "was on offer. They need choices that leave something to chance (LinUCB's don't), and an effective sample of "
        f"{LEAST_EFFECTIVE} rewards or more.",
        "Intervals take users for independent of each other, and the rewards of one user for as alike as they look.",
    ]
    if rewards.board.provisional:
        sentences.append("The composites are a rule's: no counted judge has scored anything yet.")
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
            f"{'belongs' if rewards.rewards_without_decision == 1 else 'belong'} to decisions that are not in this log."
        )
    return sentences


def says(rewards: Rewards) -> list[str]:
    return [headline(rewards), *caveats(rewards), *left_out(rewards)]


def as_data(rewards: Rewards) -> dict[str, Any]:
    """Return the report as plain data, as the API sends it."""
    return {
        "experiment": rewards.board.experiment,
        "provisional": rewards.board.provisional,
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
    remarks = [*caveats(rewards), *left_out(rewards)]
    lines = [f"**{markdown_text(headline(rewards))}**", ""]
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
