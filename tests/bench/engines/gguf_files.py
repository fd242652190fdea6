"""Writes small GGUF files, sound ones and broken ones."""

import struct
from collections.abc import Mapping, Sequence

STRING, ARRAY = 8, 9
U8, U32, U64, F32 = 0, 4, 10, 6


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def entry(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def number(key: str, value: int) -> bytes:
    return entry(key, U32, struct.pack("<I", value))


def tensor(name: str, *dimensions: int) -> bytes:
    shape = struct.pack(f"<I{len(dimensions)}Q", len(dimensions), *dimensions)
    return text(name) + shape + struct.pack("<IQ", 0, 0)


def header(tensors: int, entries: int, version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, entries)


def gguf(entries: Sequence[bytes] = (), tensors: Mapping[str, tuple[int, ...]] | None = None) -> bytes:
    shapes = {"w": (32, 8)} if tensors is None else tensors
    described = [tensor(name, *shape) for name, shape in shapes.items()]
    return header(len(described), len(entries)) + b"".join([*entries, *described])
