"""The catalog of automatic judges, by name."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tipbench.bench.engines.interface import Engine
from tipbench.bench.judge.judges.configured import configured_judges
from tipbench.bench.judge.judges.interface import Judge, JudgeName, Scored, not_reported
from tipbench.bench.records import BY_CODE, BY_RULE
from tipbench.bench.suites.rubric import Rubric
from tipbench.core.errors import InvalidInput
from tipbench.core.names import check_judge_name
from tipbench.core.settings import Settings

PERSON = "person"  # the default name of a judge by hand, and the kind of all of them
AGENT = "agent"


@dataclass(frozen=True)
class JudgeParts:
    """Everything that judges are made from; each uses what it needs."""

    rubric: Rubric
    settings: Settings
    engine_of: Callable[[str], Engine]
    seed: int
    clock: Callable[[], float]
    say: Callable[[str], None]
    concurrency: int | None = None
    scored: Scored = not_reported


def _lexical(parts: JudgeParts, identity: str | None) -> Judge:
    from tipbench.bench.judge.judges.lexical import LexicalJudge

    if identity not in (None, "lexical"):
        raise InvalidInput("the judge 'lexical' can't be renamed; leave --judge out")
    return LexicalJudge(parts.rubric)


def _command(parts: JudgeParts, identity: str | None) -> Judge:
    from tipbench.bench.judge.judges.command import CommandJudge

    program = parts.settings.get("TIPBENCH_JUDGE_COMMAND")
    name = _checked_identity(identity or "command", "command")
    return CommandJudge(program, name, parts.settings.judge_timeout_s, parts.settings)


def _agent(parts: JudgeParts, identity: str | None) -> Judge:
    from tipbench.bench.judge.judges.agent import AgentJudge, AgentProgram

    program = AgentProgram.parse(parts.settings.get("TIPBENCH_JUDGE_AGENT"))
    name = _checked_identity(identity or program.identity(parts.settings.judge_environment()), AGENT)
    return AgentJudge(program, name, parts.rubric, parts.settings, parts.say, parts.concurrency, scored=parts.scored)


def _webhook(parts: JudgeParts, identity: str | None) -> Judge:
    from tipbench.bench.judge.judges.webhook import WebhookJudge

    url = parts.settings.get("TIPBENCH_JUDGE_WEBHOOK")
    secret = parts.settings.get("TIPBENCH_JUDGE_SECRET")
    return WebhookJudge(
        url,
        secret,
        _checked_identity(identity or "webhook", "webhook"),
        parts.settings.judge_timeout_s,
        parts.clock,
        callback=parts.settings.get("TIPBENCH_CALLBACK_URL"),
    )


def _model(parts: JudgeParts, identity: str | None) -> Judge:
    from tipbench.bench.judge.judges.model import ModelJudge

    model = parts.settings.get("TIPBENCH_JUDGE_MODEL")
    name = _checked_identity(identity or re.sub(r"[^A-Za-z0-9._-]+", "-", f"model-{model}")[:40], "model")
    return ModelJudge(parts.rubric, model, parts.engine_of(model), name, parts.seed, parts.say)


CATALOG: Mapping[str, Callable[[JudgeParts, str | None], Judge]] = {
    "lexical": _lexical,
    AGENT: _agent,
    "command": _command,
    "webhook": _webhook,
    "model": _model,
}


_NEEDS = {
    AGENT: ("TIPBENCH_JUDGE_AGENT",),
    "command": ("TIPBENCH_JUDGE_COMMAND",),
    "webhook": ("TIPBENCH_JUDGE_WEBHOOK", "TIPBENCH_JUDGE_SECRET"),
    "model": ("TIPBENCH_JUDGE_MODEL",),
}


def judge_names(settings: Settings) -> list[str]:
    """Return all judges that can be named: the kinds, and those that are configured in a file."""
    return [*CATALOG, *configured_judges(settings, CATALOG)]


def _resolve(name: str, settings: Settings) -> tuple[str, Settings]:
    """Return the kind of a judge and its settings; raise InvalidInput if there is no such judge."""
    if name in CATALOG:
        return name, settings
    found = configured_judges(settings, CATALOG).get(name)
    if found is None:
        known = ", ".join(judge_names(settings))
        raise InvalidInput(f"there is no judge '{name}' that can be run; there are {known}")
    return found.kind, settings.with_values(found.settings)


def check_judge(name: str, settings: Settings) -> None:
    """Raise InvalidInput if there is no such judge, or a setting that it needs is missing."""
    kind, own = _resolve(name, settings)
    for setting in _NEEDS.get(kind, ()):
        if not own.get(setting):
            raise InvalidInput(f"the judge '{name}' needs {setting}; 'tipbench judge --help' shows an example")


def judge_model(name: str | None, settings: Settings) -> str | None:
    """Return the model that the judge uses; None if the judge is not a model, or if there is no such judge."""
    if name is None or name not in judge_names(settings):
        return None
    kind, own = _resolve(name, settings)
    return own.get("TIPBENCH_JUDGE_MODEL") or None if kind == "model" else None


def make_judge(name: str, parts: JudgeParts, identity: str | None = None) -> Judge:
    """Make a judge; a configured one scores under the name that it is configured by."""
    check_judge(name, parts.settings)
    kind, own = _resolve(name, parts.settings)
    named = identity or (None if kind == name else name)
    return CATALOG[kind](replace(parts, settings=own), named)


def person(name: str, kind: str = PERSON) -> JudgeName:
    """Return the identity of a judge by hand; raise InvalidInput if the name belongs to an automatic judge.

    `kind` is AGENT if an agent fills in the scores in a person's place.
    """
    if name in CATALOG:
        raise InvalidInput(f"'{name}' is an automatic judge (--run {name}); choose another name for this one")
    return _checked_identity(name, kind)


def _checked_identity(name: str, kind: str) -> JudgeName:
    """Check a judge's name and return its identity; an automatic judge may use its own name in the catalog."""
    if name in CATALOG and name != kind:
        raise InvalidInput(f"'{name}' is an automatic judge (--run {name}); choose another name for this one")
    if name in (BY_RULE, BY_CODE):
        raise InvalidInput(f"the name '{name}' is reserved for answers that need no judge; choose another")
    check_judge_name(name)
    return JudgeName(name, kind=kind)
