"""Stand-ins for Ollama hosts: they keep account of which models were in memory at the same time."""

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

_TIPS = json.dumps(["Close the door and write the first page.", "Send the two short replies before lunch."])


class OllamaHost:
    """Answers as Ollama does. A model is in memory while it answers, and after that unless told to leave."""

    def __init__(self, models: Mapping[str, int], latency_s: float = 0.0) -> None:
        self.latency_s = latency_s
        self.failing: set[str] = set()
        self.digests = {name: f"sha256:{name}" for name in models}
        self.answered: Counter[str] = Counter()
        self.most_loaded = 0
        self._models = models
        self._loaded: Counter[str] = Counter()
        self._counting = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def loaded(self) -> list[str]:
        with self._counting:
            return [model for model, count in self._loaded.items() if count]

    def __enter__(self) -> "OllamaHost":
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def reply(self, path: str, body: Mapping[str, Any]) -> tuple[int, Any]:
        model = str(body.get("model"))
        if path == "/api/tags":
            return 200, {"models": [self._told(name) for name in self._models]}
        if path == "/api/ps":
            return 200, {"models": [{**self._told(name), "size_vram": 0} for name in self.loaded]}
        if model not in self._models:
            return 404, {"error": f"model '{model}' not found"}
        if path == "/api/show":
            return 200, {"model_info": {"general.parameter_count": self._models[model]}}
        if path == "/api/generate":
            self._leave(model)
            return 200, {"done_reason": "unload"}
        return self._chat(model, body)

    def _chat(self, model: str, body: Mapping[str, Any]) -> tuple[int, Any]:
        with self._counting:
            self._loaded[model] += 1
            self.most_loaded = max(self.most_loaded, sum(1 for count in self._loaded.values() if count))
        time.sleep(self.latency_s)
        if body.get("keep_alive") == 0:
            self._leave(model)
        if model in self.failing:
            return 500, {"error": "llama runner process has terminated: exit status 2"}
        with self._counting:
            self.answered[model] += 1
        return 200, {"message": {"content": _TIPS}, "done_reason": "stop", "eval_count": 20, "prompt_eval_count": 90}

    def _leave(self, model: str) -> None:
        with self._counting:
            self._loaded[model] = 0

    def _told(self, name: str) -> dict[str, Any]:
        return {"name": name, "model": name, "digest": self.digests[name], "size": self._models[name] // 2}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        host = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer({})

            def do_POST(self) -> None:
                self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def _answer(self, body: Mapping[str, Any]) -> None:
                if self._client_is_gone():  # Ollama begins nothing for one that is, either
                    return
                status, reply = host.reply(self.path, body)
                content = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                with suppress(ConnectionError):  # whoever asked was ended meanwhile
                    self.wfile.write(content)

            def _client_is_gone(self) -> bool:
                try:
                    return not self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
                except BlockingIOError:
                    return False
                except ConnectionError:
                    return True

            def log_message(self, *_: object) -> None:
                pass

        return Handler
