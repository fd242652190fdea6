"""The scripted engine: answers that depend on nothing but the request, and what a script says."""

import json
from pathlib import Path

import pytest

from tests.bench.engines.stand_in import a_request
from tipbench.bench.engines.scripted import ScriptedEngine
from tipbench.core.errors import GenerationFailed, InvalidInput, ModelMissing

SCRIPT = """
parameters: 1500000000
rules:
  - when: "Maya"
    answer: '["Do this first."]'
  - when: "boom"
    fail: "the runner died"
  - when: "nothing"
    answer: ""
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "a.yaml"
    path.write_text(SCRIPT)
    return path


def test_made_up_answers_depend_on_the_request_alone() -> None:
    first = ScriptedEngine().generate(a_request("scripted/a"))
    assert ScriptedEngine().generate(a_request("scripted/a")) == first
    tips = json.loads(first.text)
    assert len(tips) == 5
    assert all(isinstance(tip, str) for tip in tips)
    others = [a_request("scripted/b"), a_request("scripted/a", seed=12), a_request("scripted/a", "Other.")]
    assert len({first.text, *(ScriptedEngine().generate(other).text for other in others)}) == 4


def test_a_model_without_a_script() -> None:
    engine = ScriptedEngine()
    info = engine.describe("scripted/a")
    assert (info.parameters, info.parameters_from, info.engine) == (1_000_000_000, "metadata", "scripted")
    assert info.digest != engine.describe("scripted/b").digest
    assert (engine.models(), engine.resident()) == ([], [])
    engine.unload("scripted/a")
    engine.close()


def test_a_script(script: Path) -> None:
    engine, model = ScriptedEngine(), f"scripted/{script}"
    assert engine.describe(model).parameters == 1_500_000_000
    assert engine.generate(a_request(model, "For Maya.")).text == '["Do this first."]'
    assert engine.generate(a_request(model, "nothing")).text == ""
    assert len(json.loads(engine.generate(a_request(model, "else")).text)) == 5
    with pytest.raises(GenerationFailed, match="the runner died"):
        engine.generate(a_request(model, "boom"))


def test_a_changed_script_is_another_model(script: Path) -> None:
    before = ScriptedEngine().describe(f"scripted/{script}")
    script.write_text(SCRIPT.replace("first", "last"))
    assert ScriptedEngine().describe(f"scripted/{script}").digest != before.digest


def test_scripts_about_size_and_absence(script: Path) -> None:
    script.write_text("rules: []")
    assert ScriptedEngine().describe(f"scripted/{script}").parameters_from == "unknown"
    script.write_text("missing: true")
    with pytest.raises(ModelMissing):
        ScriptedEngine().describe(f"scripted/{script}")


@pytest.mark.parametrize(
    "content", [b"parameters: 0", b"rules: 1", b"no: such", b"- a", b"a: [", b"\xff\xfe\xff", b"rules: [{wen: x}]"]
)
def test_a_script_that_can_not_be_used(script: Path, content: bytes) -> None:
    script.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"a\.yaml can't be used") as caught:
        ScriptedEngine().describe(f"scripted/{script}")
    assert "\n" not in str(caught.value)


def test_a_script_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="can't be used"):
        ScriptedEngine().describe(f"scripted/{tmp_path}/none.yaml")
