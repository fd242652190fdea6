"""Form data: urlencoded fields; a run's are converted to the types in the configuration table."""

from typing import Annotated, Any

from fastapi import Depends, Request

from tipbench.bench.options import OptionField, option_fields, split_names
from tipbench.web.headers import DEFAULT_BODY_LIMIT
from tipbench.web.login import Fields, read_form

MORE_MODELS, RETRY_FAILED, FRESH = "more_models", "retry_failed", "fresh"
_NOT_OPTIONS = (MORE_MODELS, RETRY_FAILED, FRESH)


async def _read(request: Request) -> Fields:
    return await read_form(request, DEFAULT_BODY_LIMIT)


Form = Annotated[Fields, Depends(_read)]


def only(form: Fields, key: str) -> str:
    """Return the value of a field that occurs once; an empty string if it is missing."""
    return form.get(key, [""])[-1]


def options_of(form: Fields) -> dict[str, Any]:
    """Return a run's options, unvalidated: a value that can't be converted stays text, for validation to report."""
    fields = {field.key: field for field in option_fields()}
    given: dict[str, Any] = {key: False for key, field in fields.items() if field.type is bool}
    for key, values in form.items():
        if key in _NOT_OPTIONS:
            continue
        field = fields.get(key)
        if field is None or values[-1].strip() or field.default is not None:  # an empty field means the default
            given[key] = values[-1] if field is None else _convert(field, values[-1].strip())
    given["models"] = ",".join([*form.get("models", ()), *split_names(only(form, MORE_MODELS))])
    given["prompts"] = ",".join(form.get("prompts", ()))
    return given


def _convert(field: OptionField, text: str) -> Any:
    if field.type is bool:
        return {"true": True, "false": False}.get(text, text)
    try:
        return field.type(text)
    except ValueError:
        return text
