"""Reads the metadata of a GGUF file, and the exact number of parameters from its tensors."""

import hashlib
import math
import struct
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from tipbench.bench.engines.admission import context_bytes_a_token
from tipbench.core.errors import EngineError

_MAGIC = b"GGUF"
_SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_STRING, _ARRAY = 8, 9
_MAX_ENTRIES = 1_000_000
# llama.cpp's file types, as `general.file_type` numbers them.
_FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S",
    12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 32: "BF16",
}  # fmt: skip


class GgufFacts(NamedTuple):
    parameters: int
    quantization: str | None
    context_length: int | None
    context_bytes_a_token: int | None


def read_gguf(path: Path) -> GgufFacts:
    """Read a GGUF file's header; raise EngineError if it can't be read or used."""
    try:
        if not path.is_file():  # reading a pipe would block
            raise EngineError(f"{path} can't be read: there is no such file")
        with path.open("rb") as file:
            return _read(file)
    except OSError as error:
        raise EngineError(f"{path} can't be read: {error.strerror or error}") from error
    except (struct.error, ValueError, MemoryError, RecursionError) as error:
        raise EngineError(f"{path} is not a usable GGUF file: {error}") from error


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(file: BinaryIO) -> GgufFacts:
    if file.read(4) != _MAGIC:
        raise ValueError("it does not start with 'GGUF'")
    version, tensors, entries = struct.unpack("<IQQ", file.read(20))
    if version < 2 or max(tensors, entries) > _MAX_ENTRIES:
        raise ValueError(f"version {version} with {tensors} tensors and {entries} entries")
    metadata: dict[str, Any] = {}
    for _ in range(entries):
        key = _string(file)
        metadata[key] = _value(file, _scalar(file, "<I"))
    if (parts := metadata.get("split.count") or 0) != 0 and parts != 1:
        raise ValueError(f"it is one of {parts} parts; put them together with 'llama-gguf-split --merge'")
    parameters = 0
    for _ in range(tensors):
        _string(file)
        dimensions = _scalar(file, "<I")
        if dimensions > 8:
            raise ValueError(f"a tensor of {dimensions} dimensions")
        parameters += math.prod(struct.unpack(f"<{dimensions}Q", file.read(8 * dimensions)))
        file.read(12)  # the tensor's type and offset
    if not parameters:
        raise ValueError("it holds no weights")
    context = next((value for key, value in metadata.items() if key.endswith(".context_length")), None)
    if not isinstance(context, int) or context < 1:
        context = None
    quantization = _FILE_TYPES.get(metadata.get("general.file_type", -1))
    return GgufFacts(parameters, quantization, context, context_bytes_a_token(metadata))


def _scalar(file: BinaryIO, form: str) -> Any:
    return struct.unpack(form, file.read(struct.calcsize(form)))[0]


def _string(file: BinaryIO) -> str:
    length = _scalar(file, "<Q")
    if length > 10_000_000:
        raise ValueError(f"a text of {length} bytes")
    return file.read(length).decode("utf-8", "replace")


def _value(file: BinaryIO, kind: int) -> Any:
    """Read a value; arrays, mostly the vocabulary, are skipped and give None."""
    if kind == _STRING:
        return _string(file)
    if kind == _ARRAY:
        element, count = struct.unpack("<IQ", file.read(12))
        if count > 50 * _MAX_ENTRIES:
            raise ValueError(f"a list of {count} values")
        if element in _SCALARS:
            file.seek(struct.calcsize(_SCALARS[element]) * count, 1)
        else:
            for _ in range(count):
                _value(file, element)
        return None
    if kind not in _SCALARS:
        raise ValueError(f"a value of unknown kind {kind}")
    return _scalar(file, _SCALARS[kind])
