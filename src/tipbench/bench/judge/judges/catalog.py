"""Names to judges that run by themselves."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tipbench.bench.engines.interface import Engine
from tipbench.bench.judge.judges.interface import Judge, JudgeName
from tipbench.bench.records import BY_RULE
from tipbench.bench.suites.rubric import Rubric
from tipbench.core.errors import InvalidInput
from tipbench.core.names import check_shape
from tipbench.core.settings import Settings

PERSON = "person"  # who judges by hand, unless somebody says otherwise


@dataclass(frozen=True)
class JudgeParts:
    """What judges are made of; each takes what it needs."""

    rubric: Rubric
    settings: Settings
    engine_of: Callable[[str], Engine]
    seed: int
    clock: Callable[[], float]
    say: Callable[[str], None]


def _lexical(parts: JudgeParts, identity: str | None) -> Judge:
    from tipbench.bench.judge.judges.lexical import LexicalJudge

    if identity not in (None, "lexical"):
        raise InvalidInput("the judge of rules has one name, lexical; leave --judge out")
    return LexicalJudge(parts.rubric)


def _command(parts: JudgeParts, identity: str | None) -> Judge:
    from tipbench.bench.judge.judges.command import CommandJudge

    program = parts.settings.get("TIPBENCH_JUDGE_COMMAND")
    name = _named(identity or "command", "command")
    return CommandJudge(program, name, parts.settings.judge_timeout_s, parts.settings)


def _webhook(parts: JudgeParts, identity: str | None) -> Judge:
    from tipbench.bench.judge.judges.webhook import WebhookJudge

    url = parts.settings.get("TIPBENCH_JUDGE_WEBHOOK")
    secret = parts.settings.get("TIPBENCH_JUDGE_SECRET")
    return WebhookJudge(
        url,
        secret,
        _named(identity or "webhook", "webhook"),
        parts.settings.judge_timeout_s,
        parts.clock,
        callback=parts.settings.get("TIPBENCH_CALLBACK_URL"),
    )


def _model(parts: JudgeParts, identity: str | None) -> Judge:
    from tipbench.bench.judge.judges.model import ModelJudge

    model = parts.settings.get("TIPBENCH_JUDGE_MODEL")
    name = _named(identity or re.sub(r"[^A-Za-z0-9._-]+", "-", f"model-{model}")[:40])
    return ModelJudge(parts.rubric, model, parts.engine_of(model), name, parts.seed, parts.say)


CATALOG: Mapping[str, Callable[[JudgeParts, str | None], Judge]] = {
    "lexical": _lexical,
    "command": _command,
    "webhook": _webhook,
    "model": _model,
}


_NEEDS = {
    "command": ("TIPBENCH_JUDGE_COMMAND",),
    "webhook": ("TIPBENCH_JUDGE_WEBHOOK", "TIPBENCH_JUDGE_SECRET"),
    "model": ("TIPBENCH_JUDGE_MODEL",),
}


def check_judge(name: str, settings: Settings) -> None:
    """That there is such a judge, and what it needs."""
    if name not in CATALOG:
        raise InvalidInput(f"there is no judge '{name}' that runs by itself; there are {', '.join(CATALOG)}")
    for setting in _NEEDS.get(name, ()):
        if not settings.get(setting):
            raise InvalidInput(f"the judge '{name}' needs {setting}; 'tipbench judge --help' shows an example")


def judge_model(name: str | None, settings: Settings) -> str | None:
    """The model that a judge asks, if the judge is a model."""
    return settings.get("TIPBENCH_JUDGE_MODEL") or None if name == "model" else None


def judge_named(name: str, parts: JudgeParts, identity: str | None = None) -> Judge:
    check_judge(name, parts.settings)
    return CATALOG[name](parts, identity)


def person(name: str) -> JudgeName:
    """Somebody who judges by hand. Raises InvalidInput for a name that belongs to a judge that runs by itself."""
    return _named(name)


def _named(name: str, kind: str = "") -> JudgeName:
    """`kind`: the judge that runs by itself and may bear its own name."""
    if name in CATALOG and name != kind:
        raise InvalidInput(f"'{name}' is a judge that runs by itself (--run {name}); take another name for this one")
    if name == BY_RULE:
        raise InvalidInput(f"the name '{name}' stands for answers that nobody has to judge; take another")
    check_shape(name)
    return JudgeName(name)
