"""Services that ours is compared with, behind the same server: python small_services.py NAME.

`bare` answers from plain ASGI, `empty` from a FastAPI handler on a thread that does nothing, `vowpal-wabbit` chooses
and learns, with one model for all users, in memory only, and without a check of what it gets. It imports nothing of
ours: Vowpal Wabbit runs in an environment of its own.
"""

import json
import random
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn

_ANSWER = b'{"event_id":"e","chosen":"tip-1","ranking":[' + b",".join([b'{"id":"tip-1","score":0.123456}'] * 20) + b"]}"
_MOST_EVENTS = 10_000
_DID = ("shown", "completed", "dismissed", "mean_dwell_s", "hour_sin", "hour_cos")
Answer = Callable[[str, bytes], bytes]
App = Callable[[dict[str, Any], Any, Any], Awaitable[None]]


def plain(answer: Answer) -> App:
    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        content = answer(scope["path"], body)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    return app


def empty() -> Any:
    from fastapi import FastAPI, Response

    app = FastAPI()

    @app.post("/{path:path}")
    def handler(path: str) -> Response:  # noqa: ARG001
        return Response(_ANSWER, media_type="application/json")

    return app


class VowpalWabbit:
    def __init__(self) -> None:
        from vowpal_wabbit_next import CBLabel, Example, Workspace

        self._label, self._example = CBLabel, Example
        self._workspace = Workspace(["--cb_explore_adf", "--noconstant", "--quiet", "--epsilon", "0.05"])
        self._events: dict[str, tuple[list[list[float]], int, float]] = {}
        self._drawn = random.Random(7)
        names = [f"f{number}" for number in range(6 + len(_DID))]
        self._indices = [self._workspace.get_index_for_scalar_feature(name, namespace_name="a") for name in names]

    def answer(self, path: str, body: bytes) -> bytes:
        asked = json.loads(body)
        if path.startswith("/score"):
            return self._score(asked)
        rows, place, propensity = self._events.pop(asked["event_id"])
        examples = self._examples(rows)
        examples[place].set_label(self._label(label=(-asked["reward"], propensity)))
        self._workspace.learn_one(examples)
        return b'{"status":"applied"}'

    def _score(self, asked: dict[str, Any]) -> bytes:
        rows = [self._row(asked, candidate) for candidate in asked["candidates"]]
        likely = self._workspace.predict_one(self._examples(rows))
        place, propensity = self._drawn.choices(likely, [share for _, share in likely])[0]
        self._events[asked["event_id"]] = (rows, place, propensity)
        while len(self._events) > _MOST_EVENTS:
            self._events.pop(next(iter(self._events)))
        ids = [candidate["id"] for candidate in asked["candidates"]]
        ranking = [{"id": ids[at], "propensity": share} for at, share in likely]
        return json.dumps({"event_id": asked["event_id"], "chosen": ids[place], "ranking": ranking}).encode()

    def _row(self, asked: dict[str, Any], candidate: dict[str, Any]) -> list[float]:
        did = asked["profile_features"]["categories"].get(candidate["category"], {})
        return [
            1.0,
            asked["context"]["hour"] / 24,
            float(candidate["category"] == asked["context"]["focus_category"]),
            candidate["len_chars"] / 400,
            candidate["effort_min"] / 45,
            (candidate["hours_since_shown"] or 0.0) / 200,
            *(did.get(name, 0.0) / 100 for name in _DID),
        ]

    def _examples(self, rows: list[list[float]]) -> list[Any]:
        import numpy as np

        where = np.array(self._indices, dtype=np.uint64)
        examples = []
        for row in np.array(rows, dtype=np.float32):
            example = self._example()
            example["a"].push_many_features(where, row)
            example.set_label(self._label())
            examples.append(example)
        return examples


def main() -> None:
    apps: dict[str, Callable[[], Any]] = {
        "bare": lambda: plain(lambda *_: _ANSWER),
        "empty": empty,
        "vowpal-wabbit": lambda: plain(VowpalWabbit().answer),
    }
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        config = uvicorn.Config(
            apps[sys.argv[1]](), http="httptools", loop="uvloop", access_log=False, log_level="error", lifespan="off"
        )
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
