"""The fields of the form for a run, drawn from the configuration table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from tipbench.bench.options import OptionField, Options, option_fields
from tipbench.core.text import utc_day
from tipbench.server.views.run_requests import Choices

_IN_VIEW = ("n_tips", "n_scenarios", "temperature", "experiment", "diversity", "judge")
_ELSEWHERE = ("models", "prompts", "suite", "mlflow_url")  # chosen from lists, or the server's own


@dataclass(frozen=True)
class RunField:
    key: str
    help: str
    kind: Literal["switch", "choice", "number", "text"]
    value: str
    choices: Sequence[tuple[str, str]] = ()  # value, and how it reads

    @property
    def is_on(self) -> bool:
        return self.value == "true"


@dataclass(frozen=True)
class RunFields:
    in_view: Sequence[RunField]
    more: Sequence[RunField]  # folded away


def run_fields(choices: Choices, now_s: float) -> RunFields:
    fields = {one.key: one for one in option_fields() if one.key not in _ELSEWHERE}
    drawn = {key: _drawn(field, choices, now_s) for key, field in fields.items()}
    more = [field for key, field in drawn.items() if key not in _IN_VIEW]
    return RunFields([drawn[key] for key in _IN_VIEW], more)


def _drawn(field: OptionField, choices: Choices, now_s: float) -> RunField:
    default = getattr(choices.defaults, field.key)
    named: Sequence[str] = get_args(Options.model_fields[field.key].annotation) if field.type is str else ()
    if field.key == "judge":
        judges = [(name, name) for name in choices.judges]
        return RunField(
            field.key, "Who judges.", "choice", default or "", [("", "a person, on the judging page"), *judges]
        )
    if field.key == "experiment":
        today = utc_day(now_s * 1000)
        return RunField(field.key, field.help, "text", f"{choices.prefix}{today}")
    if field.type is bool:
        return RunField(field.key, field.help, "switch", "true" if default else "")
    if named and all(isinstance(name, str) for name in named):
        return RunField(field.key, field.help, "choice", _text(default), [(name, name) for name in named])
    return RunField(field.key, field.help, "text" if field.type is str else "number", _text(default))


def _text(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
