"""A fake engine, for tests and for trying a suite without a model.

`scripted/NAME` answers every request with a JSON list of made-up tips that depends only on the request.
`scripted/FILE.yaml` follows a script in YAML or JSON:

    parameters: 1500000000     # what describe() reports; omit it for "unknown"
    missing: true              # the engine does not have the model
    latency_s: 0.1             # how long each answer takes
    rules:                     # the first rule whose text occurs in the prompt answers; without one: made-up tips
      - when: "Maya"
        answer: '["Do this first."]'
      - when: ""
        fail: "the runner died"
"""

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tipbench.bench.engines.interface import IN_PROCESS, bare_name
from tipbench.bench.records import Generation, GenerationRequest, ModelInfo, ResidentModel
from tipbench.core.errors import GenerationFailed, InvalidInput, ModelMissing
from tipbench.core.files import read_text
from tipbench.core.identity import data_digest, text_digest
from tipbench.core.located_yaml import load_located
from tipbench.core.untrusted import printable

_VERBS = ("Start", "Close", "Move", "Split", "Finish", "Pause", "Send", "Draft", "Skip", "Batch")
_THINGS = (
    "the report",
    "two messages",
    "the hardest task",
    "one meeting",
    "the review",
    "the plan",
    "your notes",
)
_TIMES = ("before 10:00", "for 25 minutes", "after lunch", "right now", "until the next call", "by 16:30")
_TIP_COUNT = 5


class Rule(BaseModel):
    model_config = ConfigDict(extra="forbid")

    when: str = ""
    answer: str | None = None
    fail: str | None = None


class Script(BaseModel):
    model_config = ConfigDict(extra="forbid")

    parameters: int | None = Field(None, ge=1)
    missing: bool = False
    latency_s: float = Field(0.0, ge=0, le=60)
    rules: list[Rule] = Field(default_factory=list)


class ScriptedEngine:
    """Answers without a model; the same request always gets the same answer."""

    name = "scripted"
    default_concurrency = 1
    exclusive = False
    address = IN_PROCESS
    offered = False
    advice = ""

    def __init__(self) -> None:
        self._scripts: dict[str, Script] = {}

    def describe(self, model: str) -> ModelInfo:
        script = self._script(model)
        if script.missing:
            raise ModelMissing(f"{model}: the script says that it is missing")
        parameters = script.parameters
        return ModelInfo(
            model,
            self.name,
            parameters,
            "metadata" if parameters else "unknown",
            text_digest(f"{model}{script!r}"),
            context_length=8192,
        )

    def models(self) -> list[ModelInfo]:
        return []

    def generate(self, request: GenerationRequest) -> Generation:
        prompt = "\n".join(message.content for message in request.messages)
        script = self._script(request.model)
        rule = next((rule for rule in script.rules if rule.when in prompt), Rule())
        time.sleep(script.latency_s)
        if rule.fail is not None:
            raise GenerationFailed(rule.fail)
        text = rule.answer if rule.answer is not None else _made_up_answer(request)
        return Generation(text, "stop", len(prompt) // 4, len(text) // 4, 0.0, 0.001)

    def unload(self, model: str) -> None:
        """Do nothing: no model is ever loaded."""

    def resident(self) -> list[ResidentModel]:
        return []

    def same_model(self, one: str, other: str) -> bool:
        return one == other

    def close(self) -> None:
        """Do nothing: there are no resources to release."""

    def _script(self, model: str) -> Script:
        name = bare_name(model, self.name)
        if not name.endswith(".yaml"):
            return Script(parameters=1_000_000_000)
        if name not in self._scripts:
            self._scripts[name] = _read_script(Path(name))
        return self._scripts[name]


def _read_script(path: Path) -> Script:
    try:
        text = read_text(path)
        with suppress(json.JSONDecodeError):  # JSON can hold what YAML can't: a lone surrogate
            return Script.model_validate(json.loads(text))
        located = load_located(text)
        if located.problems:
            line, problem = located.problems[0]
            raise ValueError(f"line {line}: {problem}")
        return Script.model_validate(located.data or {})
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise InvalidInput(f"script {path} can't be used: {printable(why, 500)}") from None


def _made_up_answer(request: GenerationRequest) -> str:
    source: dict[str, Any] = {
        "model": request.model,
        "messages": [[m.role, m.content] for m in request.messages],
        "seed": request.seed,
        "temperature": request.temperature,
    }
    number = int(data_digest(source), 16)
    tips = []
    for _ in range(_TIP_COUNT):
        number, verb = divmod(number, len(_VERBS))
        number, thing = divmod(number, len(_THINGS))
        number, when = divmod(number, len(_TIMES))
        tips.append(f"{_VERBS[verb]} {_THINGS[thing]} {_TIMES[when]}.")
    return json.dumps(tips)
