"""A server that answers chat completions at once, as OpenAI shapes them: what is left to measure is the client.

It runs in a process of its own, so that it takes no time of the process that is measured.
"""

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

MODELS = ("small-a", "small-b", "small-c", "small-d")
TIPS = [
    "Call the wholesaler before 07:30, so that the switch comes tomorrow.",
    "Send Jule the photo of the plan now; she can't start without it.",
    "Ring Mrs Okafor at 07:35, and name the one point that makes your quote the better one.",
    "Leave the logo for Friday: nobody waits for it.",
    "Put the phone away at 08:00; there is no signal in the cellar anyway.",
]


class _Connection(asyncio.Protocol):
    """HTTP/1.1 as far as a client of this API needs it."""

    def __init__(self) -> None:
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while b"\r\n\r\n" in self._buffer:
            head, _, rest = self._buffer.partition(b"\r\n\r\n")
            length = _content_length(head)
            if len(rest) < length:
                return
            self._buffer = rest[length:]
            self._transport.write(_reply(head, rest[:length]))


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    return 0


def _reply(head: bytes, body: bytes) -> bytes:
    if head.startswith(b"GET"):
        data: object = {"object": "list", "data": [{"id": name, "meta": {"n_params": 10**9}} for name in MODELS]}
    else:
        data = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": json.loads(body)["model"],
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": json.dumps(TIPS)},
                    "finish_reason": "stop",
                }
            ],
            "usage": {"prompt_tokens": 400, "completion_tokens": 100, "total_tokens": 500},
        }
    content = json.dumps(data).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
        len(content),
        content,
    )


@contextmanager
def stand_in_server() -> Iterator[str]:
    """The base URL of a server that runs as long as the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.parts.stand_in", str(port)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        if not process.stdout.readline():
            raise SystemExit("the stand-in server did not start")
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(_Connection, "127.0.0.1", port)
    print("ready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
