"""A thin REST client for an MLflow server. Translates its errors to TrackingError, with advice on what to do."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from sys import intern
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from tipbench.bench.tracking.interface import (
    NEWEST_AT_ONCE,
    NOT_COMPARED,
    Addition,
    Experiment,
    FinishedRun,
    Metric,
    Names,
    RunStatus,
    StoredRun,
    run_filter,
)
from tipbench.bench.tracking.mlflow_credentials import auth_of, headers_of, tls_of
from tipbench.core.errors import TrackingError, TrackingRefused, TrackingUnreachable
from tipbench.core.http import UnusableAnswer, fetch, open_client
from tipbench.core.settings import Settings
from tipbench.core.untrusted import printable, without_credentials

_API = "/api/2.0/mlflow"
_ARTIFACTS = "/api/2.0/mlflow-artifacts/artifacts"
_PREFIX = "/mlflow"  # the usual --static-prefix
_PAGE = 500  # runs, about 5 MB of JSON; larger pages are no faster
_AT_AFTER_HOST = re.compile(r"://[^/?#]*[/?#].*@", re.DOTALL)
_TIMEOUT = httpx.Timeout(60.0, connect=10.0)
_WITHIN_S = 120.0  # for a request and its complete response
_MAX_JSON_BYTES = 32_000_000
_MAX_FILE_BYTES = 128_000_000  # a batch of 48 cells takes 0.2 MB


class MlflowClient:
    """An MLflow server at a URL; a path in the URL is the server's `--static-prefix`.

    Where a URL without a path is not MLflow's, the server is also looked for at /mlflow. `address` stays what was
    given: locks, journals and caches go by it.
    """

    is_shared = True

    def __init__(self, url: str, settings: Settings, transport: httpx.BaseTransport | None = None) -> None:
        self.address = without_credentials(url)
        self.under_prefix = ""
        if _AT_AFTER_HOST.search(url):
            raise TrackingUnreachable(
                f"the address of the MLflow server {self.address} has an @ after a '/', '?' or '#'; in a user name "
                "or password, write these as %2F, %3F and %23"
            )
        try:
            auth = auth_of(url, settings)
            self._http = open_client(
                base_url=self.address,
                headers=headers_of(settings, with_token=auth is None),
                auth=auth,
                verify=tls_of(settings),
                timeout=_TIMEOUT,
                transport=transport,
            )
        except (httpx.InvalidURL, ValueError) as error:
            raise TrackingUnreachable(f"{self.address!r} is not the address of an MLflow server: {error}") from error
        self._may_be_under_prefix = self._http.base_url.path == "/"

    def find_experiment(self, name: str) -> Experiment | None:
        response = self._send("GET", f"{_API}/experiments/get-by-name", params={"experiment_name": name})
        if response.status_code == 404 and _error_code(response) == "RESOURCE_DOES_NOT_EXIST":
            return None
        with self._parsing():
            return _experiment(self._json(response)["experiment"])

    def create_experiment(self, name: str, tags: Mapping[str, str]) -> Experiment | None:
        response = self._send("POST", f"{_API}/experiments/create", json={"name": name, "tags": _pairs(tags)})
        if _error_code(response) == "RESOURCE_ALREADY_EXISTS":
            return None
        self._json(response)
        return self.find_experiment(name)

    def list_experiments(self, prefix: str) -> list[Experiment]:
        found = self.pages(f"{_API}/experiments/search", "experiments", {"max_results": 1_000})
        with self._parsing():
            return [_experiment(entry) for entry in found if entry["name"].startswith(prefix)]

    def delete_experiment(self, experiment_id: str) -> None:
        self._post("experiments/delete", {"experiment_id": experiment_id})

    def restore_experiment(self, experiment_id: str) -> None:
        self._post("experiments/restore", {"experiment_id": experiment_id})

    def tag_experiment(self, experiment_id: str, key: str, value: str, timeout_s: float | None = None) -> None:
        body = {"experiment_id": experiment_id, "key": key, "value": value}
        self._json(self._send("POST", f"{_API}/experiments/set-experiment-tag", timeout_s=timeout_s, json=body))

    def untag_experiment(self, experiment_id: str, key: str) -> None:
        self._post("experiments/delete-experiment-tag", {"experiment_id": experiment_id, "key": key})

    def create_run(self, experiment_id: str, name: str, started_ms: int, tags: Mapping[str, str]) -> tuple[str, str]:
        body = {
            "experiment_id": experiment_id,
            "run_name": name,
            "start_time": started_ms,
            "tags": _pairs(tags),
        }
        with self._parsing():
            info = self._post("runs/create", body)["run"]["info"]
            return info["run_id"], info["artifact_uri"]

    def log_batch(
        self, run_id: str, metrics: Sequence[Metric], params: Mapping[str, str], tags: Mapping[str, str]
    ) -> None:
        body = {
            "run_id": run_id,
            "metrics": [{"key": m.key, "value": m.value, "timestamp": m.timestamp_ms, "step": m.step} for m in metrics],
            "params": _pairs(params),
            "tags": _pairs(tags),
        }
        self._post("runs/log-batch", body)

    def reserve_run(self, experiment: Experiment) -> tuple[str, str] | None:  # noqa: ARG002
        return None  # no MLflow call spans several runs

    def insert_runs(self, experiment: Experiment, runs: Sequence[FinishedRun]) -> None:
        raise NotImplementedError("reserve_run gives no place to insert a run at")

    def transaction(self) -> AbstractContextManager[None]:
        return nullcontext()

    def extend_runs(self, additions: Iterable[Addition]) -> bool:  # noqa: ARG002
        return False

    def end_run(self, run_id: str, status: RunStatus, ended_ms: int) -> None:
        self._post("runs/update", {"run_id": run_id, "status": status, "end_time": ended_ms})

    def search_runs(
        self,
        experiment_id: str,
        tags: Mapping[str, str],
        omit: Sequence[str] = (),
        run_ids: Sequence[str] = (),
        only: Names | None = None,
        newest_first: bool = False,
    ) -> Iterator[StoredRun]:
        # Oldest first: runs added meanwhile come last and don't shift the pages that are still to be read.
        query = {
            "experiment_ids": [experiment_id],
            "filter": run_filter(tags, run_ids),
            "max_results": NEWEST_AT_ONCE if newest_first else _PAGE,
            "order_by": [f"attributes.start_time {'DESC' if newest_first else 'ASC'}"],
        }
        seen: set[str] = set()
        omitted = NOT_COMPARED if only else tuple(omit)
        wanted = frozenset(only.tags) if only else frozenset[str]()
        for entry in self.pages(f"{_API}/runs/search", "runs", query):
            with self._parsing():
                run = _stored_run(entry, omitted, wanted)
            if run.run_id not in seen:
                seen.add(run.run_id)
                yield run

    def delete_run(self, run_id: str) -> None:
        self._post("runs/delete", {"run_id": run_id})

    def can_store_files(self, artifact_uri: str) -> bool:
        return artifact_uri.startswith("mlflow-artifacts:")

    def put_files(self, artifact_uri: str, files: Mapping[str, bytes]) -> None:
        for name, content in files.items():
            response = self._send("PUT", _artifact_path(artifact_uri, name), content=content)
            if response.status_code >= 300:
                self._refuse(response)

    def get_file(self, artifact_uri: str, name: str) -> bytes:
        response = self._send("GET", _artifact_path(artifact_uri, name), max_bytes=_MAX_FILE_BYTES)
        if response.status_code >= 300:
            self._refuse(response)
        return response.content

    def version(self) -> str | None:
        return None  # a server has no such call

    def stamp(self) -> str | None:
        return None

    def rest(self) -> AbstractContextManager["MlflowClient"]:
        return nullcontext(self)

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        given: Any = {"params": body} if method == "GET" else {"json": body}
        response = self._send(method, path, headers=headers, **given)
        if response.is_success and response.headers.get("Content-Type") == "application/x-protobuf":
            return {}  # the answer to spans, which says nothing
        if response.status_code in (404, 405) and _error_code(response) is None:
            raise TrackingError(f"MLflow at {self.address} has no {path}; that needs a newer one, such as 3.17")
        return self._json(response)

    def close(self) -> None:
        self._http.close()

    def _post(self, call: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._json(self._send("POST", f"{_API}/{call}", json=body))

    def pages(self, path: str, key: str, query: dict[str, Any]) -> Iterator[dict[str, Any]]:
        token = ""
        while True:
            page = self._json(self._send("POST", path, json={**query, **({"page_token": token} if token else {})}))
            yield from page.get(key, [])
            token = page.get("next_page_token", "")
            if not token:
                return

    def _send(
        self,
        method: str,
        path: str,
        max_bytes: int = _MAX_JSON_BYTES,
        timeout_s: float | None = None,
        **arguments: Any,
    ) -> httpx.Response:
        limits: Any = {"max_bytes": max_bytes, "total_timeout_s": timeout_s or _WITHIN_S}
        response = self._fetch(method, path, limits, **arguments)
        if self._may_be_under_prefix:
            self._may_be_under_prefix = False
            if _is_elsewhere(response) and self._find_prefix(limits):
                return self._fetch(method, path, limits, **arguments)
        return response

    def _find_prefix(self, limits: Any) -> bool:
        """Look for MLflow below the address; if it is there, send all further requests there."""
        query = {"experiment_name": "Default"}
        found = self._fetch("GET", f"{_PREFIX}{_API}/experiments/get-by-name", limits, params=query)
        if found.status_code != 200 and _error_code(found) is None:
            return False
        try:
            is_mlflow = not found.is_success or "experiment" in found.json()
        except (ValueError, TypeError, RecursionError):
            return False
        if is_mlflow:
            self.under_prefix = f"{self.address}{_PREFIX}"
            self._http.base_url = self.under_prefix
        return is_mlflow

    def _fetch(self, method: str, path: str, limits: Any, **arguments: Any) -> httpx.Response:
        try:
            return fetch(self._http, method, path, **limits, **arguments)
        except UnusableAnswer as error:
            raise TrackingError(f"MLflow at {self.address} {error}; is it an MLflow server?") from error
        except httpx.RequestError as error:
            raise TrackingUnreachable(
                f"MLflow at {self.address} can't be reached ({error or type(error).__name__}); start it with "
                f"'mlflow server', or choose another with --mlflow-url or MLFLOW_TRACKING_URI"
            ) from error
        except (httpx.InvalidURL, UnicodeError) as error:
            raise TrackingUnreachable(f"{self.address} is not the address of an MLflow server: {error}") from error

    def _json(self, response: httpx.Response) -> dict[str, Any]:
        if response.status_code >= 300:
            self._refuse(response)
        try:
            data = response.json()
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            raise self._not_mlflow()
        return data

    @contextmanager
    def _parsing(self) -> Iterator[None]:
        """Raise TrackingError if JSON read in the block is not MLflow's: some servers answer any path with JSON."""
        try:
            yield
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise self._not_mlflow() from error

    def _not_mlflow(self) -> TrackingError:
        return TrackingError(
            f"the server at {self.address} is not an MLflow server; if it was started with --static-prefix, add that "
            "prefix to the URL"
        )

    def _host_refused(self, host: str) -> TrackingRefused:
        """Return the error for MLflow's host check, with the setting that makes it accept the host that we sent."""
        hosts = f"{printable(host, 300)},localhost:*"
        is_local = host.partition(":")[0] == "localhost"
        here = "TIPBENCH_MLFLOW_HOST to a name that it accepts" if is_local else "TIPBENCH_MLFLOW_HOST=localhost"
        return TrackingRefused(
            f"MLflow at {self.address} refuses the host name in that address; start it with --allowed-hosts '{hosts}' "
            f"(or MLFLOW_SERVER_ALLOWED_HOSTS={hosts}; this replaces its list, so add the names that others use), or "
            f"set {here} here"
        )

    def _refuse(self, response: httpx.Response) -> None:
        text = response.text
        if response.status_code < 400:
            raise TrackingError(
                f"{self.address} redirects to another address ({response.status_code}); set --mlflow-url or "
                "MLFLOW_TRACKING_URI to MLflow's own address"
            )
        if response.status_code == 403 and "Invalid Host header" in text:
            raise self._host_refused(response.request.headers["Host"])
        if response.status_code in (502, 503, 504):
            raise TrackingUnreachable(f"MLflow at {self.address} is temporarily unavailable ({response.status_code})")
        if response.status_code in (401, 403):
            raise TrackingRefused(
                f"MLflow at {self.address} refuses access ({response.status_code}); set MLFLOW_TRACKING_USERNAME and "
                f"MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN"
            )
        if _error_code(response) is None:
            raise TrackingError(
                f"{self.address} answered {response.status_code}, which is not an answer from MLflow; is it an MLflow "
                "server? If it was started with --static-prefix, add that prefix to the URL. It said: "
                f"{printable(text, 200)!r}"
            )
        raise TrackingError(f"MLflow at {self.address} refused: {printable(str(response.json().get('message')), 400)}")


def _is_elsewhere(response: httpx.Response) -> bool:
    """Whether a response looks like that of a server that has MLflow at another path, or nowhere."""
    is_page = response.is_success and response.headers.get("Content-Type", "").startswith("text/html")
    return is_page or (response.status_code in (404, 405) and _error_code(response) is None)


def _error_code(response: httpx.Response) -> str | None:
    if response.status_code < 400:
        return None
    try:
        code = response.json().get("error_code")
    except (ValueError, AttributeError, RecursionError):
        return None
    return None if code is None else str(code)


def _artifact_path(artifact_uri: str, name: str) -> str:
    root = urlsplit(artifact_uri).path.strip("/")
    return f"{_ARTIFACTS}/{quote(f'{root}/{name}')}"


def _pairs(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in values.items()]


def _experiment(entry: dict[str, Any]) -> Experiment:
    return Experiment(
        id=str(entry["experiment_id"]),
        name=entry["name"],
        artifact_location=entry.get("artifact_location", ""),
        deleted=entry.get("lifecycle_stage") == "deleted",
        created_ms=int(entry.get("creation_time", 0)),
        tags={tag["key"]: tag["value"] for tag in entry.get("tags", [])},
    )


def _stored_run(run: dict[str, Any], omitted: tuple[str, ...], wanted: Collection[str]) -> StoredRun:
    """Convert a run from JSON, without tags that begin with what is omitted, unless they are wanted.

    Keys are interned, because all runs have the same few.
    """
    info, data = run["info"], run.get("data", {})
    return StoredRun(
        run_id=info["run_id"],
        status=info["status"],
        started_ms=int(info.get("start_time", 0)),
        artifact_uri=info.get("artifact_uri", ""),
        tags={
            intern(tag["key"]): tag.get("value", "")
            for tag in data.get("tags", [])
            if tag["key"] in wanted or not tag["key"].startswith(omitted)
        },
        params={intern(param["key"]): param.get("value", "") for param in data.get("params", [])},
        metrics={intern(metric["key"]): float(metric["value"]) for metric in data.get("metrics", [])},
        steps={intern(metric["key"]): int(metric.get("step", 0)) for metric in data.get("metrics", [])},
        experiment_id=str(info.get("experiment_id", "")),
    )
