"""A judge behind a URL: the judge file is posted there, signed, and comes back filled in, immediately or later."""

import hashlib
import hmac
import re
import time
from collections.abc import Callable
from typing import Any

import httpx

from tipbench.bench.judge.judges.interface import JudgeName
from tipbench.bench.judge.judges.prompt import read_reply
from tipbench.bench.judge.verify import MOST_BYTES
from tipbench.core.errors import InvalidInput, JudgeFailed, JudgeLater
from tipbench.core.http import UnusableAnswer, fetch, open_client
from tipbench.core.untrusted import json_text, printable, without_credentials

TIMESTAMP_HEADER = "X-Tipbench-Timestamp"
SIGNATURE_HEADER = "X-Tipbench-Signature"
_TIMESTAMP = re.compile(r"[0-9]{1,12}")
_SETTING = "TIPBENCH_JUDGE_WEBHOOK"
_PAUSES_S = (0.5, 2.0)  # before the second and the third attempt
_MAX_CONNECT_S = 10.0


# Signatures between tipbench and a remote judge: HMAC-SHA256 over a timestamp and the body
#
# Both sides know the secret, which is never sent. What is sent is a key that is valid for one batch; the judge signs
# scores with it that it sends back later.


def sign(secret: str, timestamp: int | str, body: bytes) -> str:
    """Return the signature header: `sha256=<hex>` over `<timestamp>.<body>`; the timestamp is in whole seconds."""
    return f"sha256={_hmac(secret, f'{timestamp}.'.encode() + body)}"


def verify_signature(
    secret: str, timestamp: int | str, body: bytes, given: str, now: float, tolerance_s: float = 300
) -> bool:
    """Return whether this body was signed with the secret, and recently enough."""
    if not secret or not is_fresh(timestamp, now, tolerance_s):
        return False
    return hmac.compare_digest(sign(secret, timestamp, body).encode(), given.encode("utf-8", "replace"))


def is_fresh(timestamp: int | str, now: float, tolerance_s: float = 300) -> bool:
    return bool(_TIMESTAMP.fullmatch(str(timestamp))) and abs(now - int(timestamp)) <= tolerance_s


def batch_key(secret: str, batch_id: str) -> str:
    """Return the key for the scores of this batch only; the secret can't be derived from it."""
    return _hmac(secret, f"tipbench batch {batch_id}".encode("utf-8", "surrogatepass"))


def _hmac(secret: str, content: bytes) -> str:
    if not secret:
        raise InvalidInput("a judge's signatures need a secret; set TIPBENCH_JUDGE_SECRET")
    return hmac.new(secret.encode("utf-8", "surrogateescape"), content, hashlib.sha256).hexdigest()


class WebhookJudge:
    """A server that judges. Its answer is not trusted, but checked like any judge's file."""

    def __init__(
        self,
        url: str,
        secret: str,
        identity: JudgeName,
        timeout_s: float,
        clock: Callable[[], float],
        sleep: Callable[[float], None] = time.sleep,
        callback: str = "",
    ) -> None:
        self.identity = identity
        self._url = url
        self._secret = secret
        self._timeout_s = timeout_s
        self._clock = clock
        self._sleep = sleep
        self._callback = callback.rstrip("/")
        self._who = f"the judge at {printable(without_credentials(url).partition('?')[0], 200)}"
        if not secret:
            raise InvalidInput(f"{self._who} needs a secret to verify our signature; set TIPBENCH_JUDGE_SECRET")
        if not _is_address(url):
            raise InvalidInput(f"{self._who} can't be asked: {_SETTING} must be an address with http:// or https://")

    def score(self, file: dict[str, Any]) -> dict[str, Any]:
        key = batch_key(self._secret, file["batch"])
        request = {"file": file, "batch": file["batch"], "batch_key": key}
        if self._callback:
            request["callback"] = f"{self._callback}/api/judging/callback/{file['batch']}"
        reply = self._post(json_text(request, indent=None).encode())
        if reply.status_code == 202:
            raise JudgeLater(
                f"{self._who} accepted batch {file['batch']} and will answer later; its scores must come back signed "
                "with that batch's key, through the API of 'tipbench serve', or as a file: tipbench judge --apply FILE",
                batch=file["batch"],
                items=len(file["items"]),
            )
        if 300 <= reply.status_code < 400:
            raise JudgeFailed(
                f"{self._who} redirects to another address ({reply.status_code}); set {_SETTING} to the final address"
            )
        if reply.status_code != 200:
            raise JudgeFailed(f"{self._who} answered {reply.status_code}: {self._excerpt(reply.content, key)}")
        data = read_reply(reply.content, self._who)
        inner = data.get("file")
        return inner if isinstance(inner, dict) and "items" not in data else data

    def _post(self, body: bytes) -> httpx.Response:
        """Post the request; retry only if the connection was refused, so that nothing is judged twice."""
        for pause in (*_PAUSES_S, None):
            try:
                return self._send(body)
            except httpx.ConnectError as error:
                if pause is None or not _is_refusal(error):
                    raise self._unreachable(error) from error
                self._sleep(pause)
            except httpx.ConnectTimeout as error:
                raise self._unreachable(error) from error
            except httpx.TimeoutException as error:
                raise self._out_of_time() from error
            except UnusableAnswer as error:
                raise JudgeFailed(f"{self._who} {error}; it must return nothing but the file") from error
            except httpx.RequestError as error:
                raise JudgeFailed(f"{self._who} closed the connection: {printable(str(error), 200)}") from error
            except (httpx.InvalidURL, OSError, ValueError, ImportError) as error:  # from certificates or proxies
                raise JudgeFailed(f"{self._who} can't be asked: {printable(str(error), 200)}") from error
        raise AssertionError("the last try returns or raises")

    def _send(self, body: bytes) -> httpx.Response:
        timestamp = int(self._clock())
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            TIMESTAMP_HEADER: str(timestamp),
            SIGNATURE_HEADER: sign(self._secret, timestamp, body),
        }
        timeout = httpx.Timeout(self._timeout_s, connect=min(self._timeout_s, _MAX_CONNECT_S))
        with open_client(timeout=timeout) as client:
            return fetch(
                client,
                "POST",
                self._url,
                max_bytes=MOST_BYTES,
                total_timeout_s=self._timeout_s,
                content=body,
                headers=headers,
            )

    def _excerpt(self, content: bytes, key: str) -> str:
        """Return the start of an error response without secrets: it may repeat what was sent, even the batch's key."""
        text = content[:100_000].decode("utf-8", "replace").replace(key, "…").replace(self._secret, "…")
        return printable(text, 200) or "(nothing)"

    def _unreachable(self, error: Exception) -> JudgeFailed:
        return JudgeFailed(
            f"{self._who} can't be reached ({printable(str(error), 200)}); start it, or set {_SETTING} to its address"
        )

    def _out_of_time(self) -> JudgeFailed:
        return JudgeFailed(
            f"{self._who} did not answer within {self._timeout_s:g} s; TIPBENCH_JUDGE_TIMEOUT sets the limit"
        )


def _is_address(url: str) -> bool:
    try:
        parsed = httpx.URL(url)
        return parsed.scheme in ("http", "https") and bool(parsed.host)
    except (httpx.InvalidURL, ValueError):
        return False


def _is_refusal(error: BaseException | None) -> bool:
    """Return whether the connection was refused; the HTTP library chains the system's error."""
    while error is not None:
        if isinstance(error, ConnectionRefusedError):
            return True
        error = error.__cause__ or error.__context__
    return False
