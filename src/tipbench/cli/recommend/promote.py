"""`tipbench recommend promote`: a policy goes live."""

import time
from contextlib import closing
from pathlib import Path

import click

from tipbench.cli.console import out
from tipbench.core.settings import Settings
from tipbench.recommender.promotion.evidence import GateSearch, promotion
from tipbench.recommender.store.moving import open_store
from tipbench.server.jobs.simulation_asked import open_world


@click.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench sim gate --candidate egreedy/v2 --incumbent egreedy    # first: does it beat the live one?\n"
    "  tipbench recommend promote egreedy/v2\n"
    "  tipbench recommend promote egreedy/v2 --gate 0c3f1a9e5b7d2468 --yes\n\n"
    "Exits with 2 if it is refused. 'tipbench recommend rollback' undoes it."
)
@click.argument("policy")
@click.option("--gate", "gate_id", metavar="ID", help="Use this gate.  [default: the newest that fits]")
@click.option(
    "--world",
    "world_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="World that the gate was run in.  [default: those of the suite 'tip']",
)
@click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
def command(policy: str, gate_id: str | None, world_file: Path | None, yes: bool) -> int:
    """Make POLICY the live one.

    This needs a gate that was passed for exactly this case: the policy's features and parameters, the policy that is
    live now, this version of the simulator, the same world, and rules as strict as today's. A running service switches
    by itself, and rewards for what was served before still go to the policy that served it.
    """
    settings = Settings()
    with closing(open_store(settings)) as store:
        search = GateSearch(settings.home, open_world(world_file), world_file, gate_id)
        decided = promotion(policy, store, search, round(time.time() * 1000))
        act, gate = decided.act, decided.gate
        assert gate
        question = (
            f"Make {act.to} live instead of {act.left}? It passed gate {gate.id}, with a gain of at least "
            f"{gate.verdict.pooled.lower_bound:+.4f} a decision."
        )
        if not yes and not click.confirm(question, default=False):
            out.print(f"Nothing was changed: {act.left} is live.")
            return 0
        store.promotions.append(act, decided.known)
    out.print(
        f"{act.to} is live now instead of {act.left}, by gate {gate.id}. To undo it: tipbench recommend rollback",
        soft_wrap=True,
    )
    return 0
