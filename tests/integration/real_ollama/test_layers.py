"""A file cut down to its first layers keeps all else, and cut down to all of them it is the same file."""

from __future__ import annotations

from pathlib import Path

from tests.integration.real_ollama.layers import first_layers
from tipbench.bench.engines.gguf import read_gguf
from tipbench.bench.engines.weights import weights_path

LAYERS, PARAMETERS, EACH = 30, 134_515_008, 3_540_096  # of the weights, and a layer's own


def test_what_is_left_of_a_model(weights_folder: Path, tmp_path: Path) -> None:
    whole = weights_path(weights_folder, "smollm2:135m")
    assert first_layers(whole.read_bytes(), LAYERS) == whole.read_bytes()
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(first_layers(whole.read_bytes(), 6))
    assert read_gguf(cut).parameters == PARAMETERS - (LAYERS - 6) * EACH
    assert read_gguf(cut)._replace(parameters=PARAMETERS) == read_gguf(whole)._replace(
        context_bytes_a_token=read_gguf(cut).context_bytes_a_token
    )
