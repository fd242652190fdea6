"""What a form sends: urlencoded, and for a run converted by the types of the configuration table."""

from typing import Annotated, Any

from fastapi import Depends, Request

from tipbench.bench.options import OptionField, option_fields, split_names
from tipbench.web.headers import USUAL_LIMIT
from tipbench.web.login import Fields, read_form

MORE_MODELS, RETRY_FAILED, FRESH = "more_models", "retry_failed", "fresh"
_BESIDE_THE_OPTIONS = (MORE_MODELS, RETRY_FAILED, FRESH)


async def _sent(request: Request) -> Fields:
    return await read_form(request, USUAL_LIMIT)


Form = Annotated[Fields, Depends(_sent)]


def only(form: Fields, key: str) -> str:
    """A field that is there once; an empty text where it isn't."""
    return form.get(key, [""])[-1]


def options_of(form: Fields) -> dict[str, Any]:
    """A run's options, unchecked: what can't be converted stays as it was written, for the check to complain about."""
    fields = {field.key: field for field in option_fields()}
    given: dict[str, Any] = {key: False for key, field in fields.items() if field.type is bool}
    for key, values in form.items():
        if key in _BESIDE_THE_OPTIONS:
            continue
        field = fields.get(key)
        if field is None or values[-1].strip() or field.default is not None:  # else empty means: the default
            given[key] = values[-1] if field is None else _converted(field, values[-1].strip())
    given["models"] = ",".join([*form.get("models", ()), *split_names(only(form, MORE_MODELS))])
    given["prompts"] = ",".join(form.get("prompts", ()))
    return given


def _converted(field: OptionField, text: str) -> Any:
    if field.type is bool:
        return {"true": True, "false": False}.get(text, text)
    try:
        return field.type(text)
    except ValueError:
        return text
