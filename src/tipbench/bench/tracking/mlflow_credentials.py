"""How we show ourselves to an MLflow server: headers, user name and password, certificates, all by settings."""

import ssl
from urllib.parse import unquote, urlsplit

from tipbench.core.errors import TrackingRefused
from tipbench.core.http import tls_context
from tipbench.core.settings import Settings


def headers_of(settings: Settings, with_token: bool) -> dict[str, str]:
    """Return the headers that the settings ask for; raise TrackingRefused if one can't be sent, without its value."""
    headers = {}
    for setting, header, form in (
        ("TIPBENCH_MLFLOW_HOST", "Host", "{}"),
        ("MLFLOW_TRACKING_TOKEN", "Authorization", "Bearer {}"),
    ):
        value = settings.get(setting)
        if not (value.isascii() and value.isprintable()):  # the HTTP library's error would reveal it
            raise TrackingRefused(f"{setting} contains characters that can't be sent, such as a line break")
        if value and (header == "Host" or with_token):
            headers[header] = form.format(value)
    return headers


def auth_of(url: str, settings: Settings) -> tuple[str, str] | None:
    """Return the user name and password in the URL or in the settings; None if there are none."""
    parts = urlsplit(url)
    if parts.username:
        return unquote(parts.username), unquote(parts.password or "")
    user = settings.get("MLFLOW_TRACKING_USERNAME")
    return (user, settings.get("MLFLOW_TRACKING_PASSWORD")) if user else None


def tls_of(settings: Settings) -> ssl.SSLContext | bool:
    """Return which certificates to trust and to show; False to trust any."""
    if settings.is_true("MLFLOW_TRACKING_INSECURE_TLS"):
        return False
    trusted = settings.get("MLFLOW_TRACKING_SERVER_CERT_PATH")
    client_cert = settings.get("MLFLOW_TRACKING_CLIENT_CERT_PATH")
    if not trusted and not client_cert:
        return tls_context()
    try:
        context = ssl.create_default_context(cafile=trusted or None)
        if client_cert:
            context.load_cert_chain(client_cert)
    except (OSError, ssl.SSLError) as error:
        raise TrackingRefused(
            f"the certificate in MLFLOW_TRACKING_SERVER_CERT_PATH or MLFLOW_TRACKING_CLIENT_CERT_PATH "
            f"can't be used: {error}"
        ) from error
    return context
