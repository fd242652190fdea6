"""Which of MLflow's calls go through, and what keeps the answers from running as code in our origin.

MLflow's server can do more than show results: it calls models with stored keys, runs a shell for an assistant, posts to
webhooks and reads files wherever an experiment says that its artifacts are. Its pages here are for looking at runs and
for tidying them up.
"""

import re
from collections.abc import Iterable, Mapping

# What MLflow's pages need at least, tried in Chromium: no inline script and no eval; styles are set by script.
PAGES_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "worker-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
DATA_POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox"

_CLOSED = re.compile(r"/(ajax-api/3\.0/mlflow/assistant|gateway|v1)(/|$)")
_READING = (
    "(experiments|runs|logged-models|datasets|traces|issues)/search|experiments/search-datasets|"
    "traces/(batchGetInfos|metrics|calculate-filter-correlation)|registered-models/get-latest-versions|"
    "prompt-optimization/jobs/search"
)
_WRITING = (
    "runs/(create|update|delete|restore|set-tag|delete-tag|log-metric|log-parameter|log-batch)|"
    "experiments/(update|delete|restore|set-experiment-tag|delete-experiment-tag)"
)
_POST = re.compile(rf"/(ajax-)?api/[23]\.0/mlflow/({_READING}|{_WRITING})|/graphql|/ajax-api/3\.0/jobs/search")
_ARTIFACT = re.compile(
    r"/(get-artifact|model-versions/get-artifact)$|/get-trace-artifact$|/mlflow-artifacts/|/artifacts/files$"
)
_PAGES = re.compile(r"/(static-files/.*)?")
_SHOWN_AS_THEY_ARE = frozenset(
    ("text/plain", "application/json", "image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp")
)
_PASSED_ON = frozenset(
    (
        *("accept", "accept-encoding", "content-type", "content-length", "content-encoding"),
        *("range", "if-range", "if-none-match", "if-modified-since", "cache-control"),
    )
)
_KEPT_BACK = re.compile(
    "connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|set-cookie|server|date|"
    "access-control-.*|content-security-policy|x-frame-options"
)


def refusal(method: str, path: str) -> str:
    """Why a call does not go through; empty when it does."""
    if {".", ".."} & set(path.split("/")) or "\\" in path:
        return "a path with '.' or '..' in it leads nowhere"
    if method in ("GET", "HEAD") and not _CLOSED.match(path):
        return ""
    if method == "POST" and _POST.fullmatch(path):
        return ""
    return (
        f"{method} {path[:120]} is not open here: MLflow's pages show runs and experiments, rename, tag, delete and "
        "restore them; for anything else start MLflow's own server on the database"
    )


def request_headers(given: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """What MLflow needs to know: never a cookie, a token, an origin or where the request came from."""
    return [(name, value) for name, value in given if name.decode("latin-1").lower() in _PASSED_ON]


def response_headers(path: str, given: Mapping[str, str]) -> dict[str, str]:
    """MLflow's headers without those of its connection, and with ours. Names are in lower case."""
    kept = {name.lower(): value for name, value in given.items() if not _KEPT_BACK.fullmatch(name.lower())}
    kept["x-content-type-options"] = "nosniff"
    kept["content-security-policy"] = PAGES_POLICY if _PAGES.fullmatch(path) else DATA_POLICY
    if _ARTIFACT.search(path):
        _make_inert(kept)
    return kept


def _make_inert(headers: dict[str, str]) -> None:
    """A model may have written it: a file to keep, of a type that no browser runs, not even as somebody's script."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _SHOWN_AS_THEY_ARE:
        headers["content-type"] = "application/octet-stream"
    if not headers.get("content-disposition", "").lower().startswith("attachment"):
        headers["content-disposition"] = "attachment"
