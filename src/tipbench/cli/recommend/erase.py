"""`tipbench recommend erase`: everything about a user."""

import time
from collections.abc import Sequence

import click

from tipbench.cli.console import note, out
from tipbench.core.settings import Settings
from tipbench.core.text import counted
from tipbench.core.untrusted import printable
from tipbench.recommender.erasure import Erased, Eraser, backups
from tipbench.recommender.log.rewriting import exclusive_logs
from tipbench.recommender.store.interface import check_user_id
from tipbench.recommender.store.moving import open_all
from tipbench.recommender.user_traces import Search

_REMAINS = "remains of what was removed before"


@click.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench recommend erase anna\n"
    "  tipbench recommend erase anna bert --yes\n\n"
    "Services may run meanwhile; send no more requests for these users. If interrupted, run the same command again. "
    "Exits with 1 if something is left."
)
@click.argument("users", nargs=-1, required=True, metavar="USER…")
@click.option("--yes", is_flag=True, help="Don't ask for confirmation.")
def command(users: tuple[str, ...], yes: bool) -> int:
    """Erase users by id: their states and events in every store, their lines in the decision log, and their signals.

    Says what was removed, and what may still hold them. That can't be undone.
    """
    for user_id in users:
        check_user_id(user_id)
    settings = Settings()
    with open_all(settings) as stores:
        eraser = Eraser(settings.home, stores, time.time)
        known = [user_id for user_id in dict.fromkeys(users) if _is_known(eraser, user_id)]
        if not known:
            _show_elsewhere(backups(settings.home))
            return 0
        if not yes and not click.confirm(f"Erase {' and '.join(known)} for good?", default=False):
            out.print("Nothing was changed.")
            return 0
        with exclusive_logs(settings.home, note):
            results = [_show(user_id, eraser.erase(user_id), eraser) for user_id in known]
    return 0 if all(results) else 1


def _is_known(eraser: Eraser, user_id: str) -> bool:
    """Print what there is of a user; return whether there is anything."""
    traces = eraser.find(user_id)
    search = Search() if traces else eraser.search(user_id)
    if traces or search.theirs or search.unreadable:
        out.print(printable(f"Found of {user_id}: {traces or _REMAINS}."), soft_wrap=True)
        return True
    searched = f"Searched: {eraser.searched}."
    out.print(printable(f"Nothing of {user_id} was found, so nothing was changed. {searched}"), soft_wrap=True)
    _show_mentions(user_id, search)
    return False


def _show(user_id: str, erased: Erased, eraser: Eraser) -> bool:
    """Print what was done; return whether nothing of the user is left."""
    removed = erased.removed or _REMAINS
    if erased.is_complete:
        out.print(printable(f"{user_id} is erased. Removed: {removed}."), style="bold", soft_wrap=True)
        out.print(printable(f"Nothing of {user_id} is left in {eraser.searched}."), soft_wrap=True)
    else:
        out.print(printable(f"{user_id} is not gone yet. Removed: {removed}."), style="bold red", soft_wrap=True)
        if erased.left:
            _show_item(f"new: {erased.left}. Stop the app's requests for this user, and run this again")
        for path in erased.search.theirs:
            _show_item(f"{path} is about this user. Run this again")
        for where in erased.search.unreadable:
            _show_item(f"{where} can't be read, and has this id in it. Remove it if it is about this user")
    _show_mentions(user_id, erased.search)
    _show_elsewhere(erased.elsewhere)
    return erased.is_complete


def _show_mentions(user_id: str, search: Search) -> None:
    if search.mentions:
        files = counted(len(search.mentions), "file") + (", such as" if len(search.mentions) > 1 else ":")
        out.print(
            f"The word {user_id} is in a text, or is the id of something else, in {files} "
            f"{printable(str(search.mentions[0]))}. That was not changed; look whether it is about this user.",
            soft_wrap=True,
        )


def _show_elsewhere(places: Sequence[str]) -> None:
    if places:
        out.print("What may still hold it, and can't be changed from here:")
        for place in places:
            _show_item(place)


def _show_item(text: str) -> None:
    out.print(printable(f"  - {text}"), soft_wrap=True)
