"""`tipbench recommend rollback`: the previous policy goes live again."""

import time
from contextlib import closing

import click

from tipbench.cli.console import out
from tipbench.core.settings import Settings
from tipbench.core.untrusted import printable
from tipbench.recommender.promotion.evidence import rollback
from tipbench.recommender.promotion.interface import live_history
from tipbench.recommender.store.moving import open_store


@click.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench recommend rollback\n"
    "  tipbench recommend rollback --yes\n\n"
    "It needs no gate. Rolling back twice goes back two promotions."
)
@click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
def command(yes: bool) -> int:
    """Undo the last promotion: the policy that was live before it becomes live again.

    A second rollback undoes the promotion before that one, and so on to the first.
    """
    with closing(open_store(Settings())) as store:
        decided = rollback(store, round(time.time() * 1000))
        act = decided.act
        if not yes and not click.confirm(f"Make {act.to} live again instead of {printable(act.left)}?", default=False):
            out.print(printable(f"Nothing was changed: {act.left} is live."))
            return 0
        store.promotions.append(act, decided.known)
        left = len(live_history(store.promotions.history(), store.promotions.address)) - 1
    further = f"Promotions that can still be rolled back: {left}." if left else ""
    out.print(printable(f"{act.to} is live again instead of {act.left}. {further}".rstrip()), soft_wrap=True)
    return 0
