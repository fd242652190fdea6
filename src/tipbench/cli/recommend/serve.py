"""`tipbench recommend serve`: the recommender's service."""

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from tipbench.cli.console import note, out
from tipbench.cli.listening import LOOPBACK, is_loopback, open_listener, url_of, uvicorn_options
from tipbench.core.errors import InvalidInput, MissingExtra
from tipbench.core.settings import Settings
from tipbench.core.untrusted import printable

if TYPE_CHECKING:
    from tipbench.web.service_key import ServiceKey

_MAX_WORKERS = 64


@click.command(
    epilog="Examples:\n\n\b\n"
    "  tipbench recommend serve\n"
    "  tipbench recommend serve --workers 2 --shadow egreedy-v2-shadow\n"
    "  tipbench recommend serve --behind-proxy    # for other machines, behind an https proxy on this one\n"
    "  tipbench recommend serve --new-key\n\n"
    "The first start creates a key and shows it once. The admin server has its own token; neither works for the other."
)
@click.option("--host", default=LOOPBACK, show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8766,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, _MAX_WORKERS),
    default=1,
    show_default=True,
    help="Worker processes; they share all states.",
)
@click.option(
    "--shadow",
    "shadows",
    metavar="NAME",
    multiple=True,
    help="Run this shadow policy beside the live one; adds to TIPBENCH_SHADOWS, and can be repeated.",
)
@click.option(
    "--behind-proxy",
    is_flag=True,
    help="Trust X-Forwarded-For and -Proto of the proxies in TIPBENCH_TRUSTED_PROXIES, by default one on this machine.",
)
@click.option("--new-key", is_flag=True, help="Create a new key; the old one stops working.")
def command(host: str, port: int, workers: int, shadows: tuple[str, ...], behind_proxy: bool, new_key: bool) -> int:
    """Start the service that scores candidates and takes rewards over HTTP."""
    settings = Settings()
    try:
        import uvicorn

        from tipbench.cli.recommend.workers import serve_with_workers
        from tipbench.recommender.service.app import check_service, service_key, serving_server
        from tipbench.web.server import Server
    except ModuleNotFoundError as error:
        raise MissingExtra(f"the service needs more packages: pip install 'tipbench[server]' ({error})") from error
    server_options = uvicorn_options(behind_proxy)
    with open_listener(host, port) as listener:
        key = service_key(settings)
        if not is_loopback(host) and not new_key and not key.exists():
            raise InvalidInput(
                "there is no key yet, so only this machine may be served; set TIPBENCH_SERVING_KEY, or start once "
                "without --host to get one"
            )
        checked = check_service(settings, shadows)
        for change in checked.changes:
            note(f"The live policy is not what was promoted: {printable(change)}. Run a gate for it as it is now.")
        _show_key(key, new_key)
        out.print(f"tipbench recommend serves at {url_of(host, listener)} (Ctrl-C ends it)", soft_wrap=True)
        out.print(checked.summary, soft_wrap=True)
        if not is_loopback(host):
            note(
                "Other machines can reach this address, and the key is sent unencrypted; put an https proxy before it."
            )
        out.file.flush()
        if workers > 1:
            serve_with_workers(workers, listener, shadows, behind_proxy)
        else:
            config = uvicorn.Config(serving_server(settings, shadows), **server_options)
            with suppress(KeyboardInterrupt):  # uvicorn re-raises Ctrl-C once everything is closed
                Server(config).run(sockets=[listener])
    note("The service has stopped. All states are stored.")
    return 0


def _show_key(key: "ServiceKey", new_key: bool) -> None:
    """Print a new key, this once: only its hash is stored. Called once it is certain that the service will start."""
    created = key.renew() if new_key else key.ensure()
    if created:
        out.print(f"Key, shown this once: {created}", soft_wrap=True)
        out.print("Send it as 'Authorization: Bearer …'. 'tipbench recommend serve --new-key' creates another.")
