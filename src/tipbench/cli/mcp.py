"""`tipbench mcp`: the MCP server on standard input and output."""

import sys
import time
from contextlib import closing
from logging.config import dictConfig
from typing import Any

import click

from tipbench.bench.judge.judges.catalog import PERSON, person
from tipbench.bench.tracking.address import store_address
from tipbench.cli.console import note
from tipbench.cli.flags import gather, option_flags
from tipbench.core.errors import MissingExtra
from tipbench.core.settings import Settings


@click.command(
    epilog="Examples:\n\n\b\n"
    "  claude mcp add tipbench-judge -- tipbench mcp --judge NAME   # Claude Code judges as NAME\n"
    "  claude mcp add tipbench -- tipbench mcp                      # … or runs the bench\n\n"
    'Other clients: {"mcpServers": {"tipbench": {"command": "tipbench", "args": ["mcp", "--judge", "NAME"]}}}. '
    "A 'tipbench serve' has the same at /mcp, behind its tokens. 'docs/judging.md' has more."
)
@click.option("--judge", metavar="NAME", help="Judge under this name, blind: the judging tools and no others.")
@option_flags("mlflow_url")
def command(judge: str | None, **given: Any) -> int:
    """Let an agent judge and work with the bench: an MCP server, which the agent's client starts.

    Without --judge it has all tools: experiments, leaderboard, texts, start_collection, job, decide, and those for
    judging. What the agent has read the results of, it can't judge any more.
    """
    settings = Settings()
    if judge is not None:
        person(judge)
    try:
        from tipbench.server.jobs.on_demand import open_runner_on_demand
        from tipbench.server.mcp.server import full_face, judging_face, serve_stdio
        from tipbench.server.mcp.tools import SeenResults
        from tipbench.server.views.bench import new_id, open_bench_views
        from tipbench.web.log import log_config
    except ModuleNotFoundError as error:
        raise MissingExtra(f"the MCP server needs another package: pip install 'tipbench[mcp]' ({error})") from error
    if sys.stdin.isatty():
        note("This speaks MCP on standard input and output; an agent's client starts it ('tipbench mcp --help').")
    dictConfig(log_config())  # to standard error: standard output belongs to the protocol
    address = store_address(gather(given).mlflow_url, settings, note)
    runner = open_runner_on_demand(address, settings.home, settings, time.time, new_id)
    with closing(open_bench_views(address, settings, runner, time.time, new_id)) as views:
        serve_stdio(judging_face(views.desk, judge) if judge else full_face(views, PERSON, SeenResults()))
    return 0
