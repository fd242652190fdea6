"""`tipbench serve`: the admin server."""

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from tipbench.bench.tracking.address import store_address
from tipbench.cli.console import note, out
from tipbench.cli.flags import gather, option_flags
from tipbench.cli.listening import LOOPBACK, is_loopback, open_listener, url_of, uvicorn_options
from tipbench.core.errors import InvalidInput, MissingExtra
from tipbench.core.settings import Settings

if TYPE_CHECKING:
    from tipbench.web.tokens import Tokens


@click.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench serve\n"
    "  tipbench serve --port 9000 --mlflow-url http://mlflow:5000\n"
    "  tipbench serve --behind-proxy    # for other machines, behind an https proxy on this one\n"
    "  tipbench serve --new-token\n\n"
    "The first start creates an admin token and shows it once. Running jobs continue when the server stops; the next "
    "start finds them."
)
@click.option("--host", default=LOOPBACK, show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@click.option(
    "--behind-proxy",
    is_flag=True,
    help="Trust X-Forwarded-For and -Proto of the proxies in TIPBENCH_TRUSTED_PROXIES, by default one on this machine.",
)
@click.option("--new-token", is_flag=True, help="Create a new admin token; the old one and its sessions stop working.")
@option_flags("mlflow_url")
def command(host: str, port: int, behind_proxy: bool, new_token: bool, **given: Any) -> int:
    """Start the admin server: run collections, judge and read leaderboards in a browser or over the API."""
    settings = Settings()
    try:
        import uvicorn

        from tipbench.bench.judge.judges.catalog import person
        from tipbench.server.app import admin_server
        from tipbench.web.authentication import metrics_token, open_access
        from tipbench.web.server import Server
    except ModuleNotFoundError as error:
        raise MissingExtra(f"the server needs more packages: pip install 'tipbench[server]' ({error})") from error
    server_options = uvicorn_options(behind_proxy)
    address = store_address(gather(given).mlflow_url, settings, note)
    with open_listener(host, port) as listener:
        admin_token = settings.get("TIPBENCH_ADMIN_TOKEN")
        access = open_access(settings.home, time.time, admin_token, person, metrics_token(settings))
        if not is_loopback(host) and not new_token and not access.tokens.has_admin():
            raise InvalidInput(
                "there is no admin token yet, so only this machine may be served; set TIPBENCH_ADMIN_TOKEN, or start "
                "once without --host to get one"
            )
        app = admin_server(address, settings, access, host=host)
        _show_token(access.tokens, new_token)
        out.print(f"tipbench serves at {url_of(host, listener)} (Ctrl-C ends it)", soft_wrap=True)
        out.print(f"Results are in {address}", soft_wrap=True)
        if not is_loopback(host):
            note(
                "Other machines can reach this address, and tokens are sent unencrypted; put an https proxy before it."
            )
        if (behind_proxy or not is_loopback(host)) and not settings.is_set("TIPBENCH_ALLOWED_HOSTS"):
            note(
                "Only requests to localhost and IP addresses are answered; set TIPBENCH_ALLOWED_HOSTS to the name that "
                "people use."
            )
        out.file.flush()
        config = uvicorn.Config(app, **server_options)
        with suppress(KeyboardInterrupt):  # uvicorn re-raises Ctrl-C once everything is closed
            Server(config).run(sockets=[listener])
    note("The server has stopped. Running jobs continue, and the next 'tipbench serve' finds them.")
    return 0


def _show_token(tokens: "Tokens", new_token: bool) -> None:
    """Print a new token, this once: only its hash is stored. Called once it is certain that the server will start."""
    token = tokens.renew_admin() if new_token else tokens.ensure_admin()
    if token:
        out.print(f"Admin token, shown this once: {token}", soft_wrap=True)
        out.print(
            "Log in with it, or send it as 'Authorization: Bearer …'. 'tipbench serve --new-token' creates another."
        )
