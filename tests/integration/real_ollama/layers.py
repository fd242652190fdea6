"""A model's file with its first layers only: a model as any other, whose prompts are read in a fifth of the time."""

from __future__ import annotations

import struct
from io import BytesIO
from typing import NamedTuple

_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # of GGUF's scalars
_UNSIGNED_32, _STRING, _ARRAY = 4, 8, 9
_ALIGNMENT = 32


class _Tensor(NamedTuple):
    name: str
    shape: bytes  # its dimensions and type, as they stand in the file
    offset: int


def first_layers(whole: bytes, layers: int) -> bytes:
    """The GGUF file without the tensors of later layers."""
    file = BytesIO(whole)
    magic, version, tensors, entries = struct.unpack("<4sIQQ", file.read(24))
    metadata = bytearray()
    for _ in range(entries):
        start = file.tell()
        key = _string(file)
        kind = _number(file, 4)
        value = file.tell()
        _skip(file, kind)
        entry = bytearray(whole[start : file.tell()])
        if key.endswith(".block_count"):
            assert kind == _UNSIGNED_32, kind
            entry[value - start :] = struct.pack("<I", layers)
        metadata += entry
    found = [_tensor(file) for _ in range(tensors)]
    data = whole[file.tell() + -file.tell() % _ALIGNMENT :]
    ends = dict(zip(sorted(t.offset for t in found), [*sorted(t.offset for t in found)[1:], len(data)], strict=True))
    kept = [tensor for tensor in found if not _is_later(tensor.name, layers)]
    head, body = bytearray(struct.pack("<4sIQQ", magic, version, len(kept), entries) + metadata), bytearray()
    for tensor in kept:
        name = tensor.name.encode()
        head += struct.pack("<Q", len(name)) + name + tensor.shape + struct.pack("<Q", len(body))
        body += data[tensor.offset : ends[tensor.offset]]  # with its padding, so that the next one is aligned, too
        body += bytes(-len(body) % _ALIGNMENT)
    return bytes(head + bytes(-len(head) % _ALIGNMENT) + body)


def _is_later(name: str, layers: int) -> bool:
    block, number, *_ = f"{name}..".split(".")
    return block == "blk" and int(number) >= layers


def _tensor(file: BytesIO) -> _Tensor:
    name = _string(file)
    start = file.tell()
    dimensions = _number(file, 4)
    file.seek(start)
    return _Tensor(name, file.read(4 + 8 * dimensions + 4), _number(file, 8))


def _skip(file: BytesIO, kind: int) -> None:
    if kind == _STRING:
        _string(file)
    elif kind == _ARRAY:
        element, count = _number(file, 4), _number(file, 8)
        for _ in range(count):
            _skip(file, element)
    else:
        file.seek(_SIZES[kind], 1)


def _string(file: BytesIO) -> str:
    return file.read(_number(file, 8)).decode("utf-8", "replace")


def _number(file: BytesIO, size: int) -> int:
    return int.from_bytes(file.read(size), "little")
