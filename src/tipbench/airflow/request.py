"""What a run of the DAG is asked to do: its conf, held against the configuration table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tipbench.bench.options import Options, make_options
from tipbench.core.errors import Problems
from tipbench.core.untrusted import shown

FLAGS = {
    "retry_failed": "Try the cells again that failed before.",
    "fresh": "Start over: what is stored of this grid is set aside.",
}


@dataclass(frozen=True)
class Request:
    options: Options
    retry_failed: bool
    fresh: bool


def read_conf(conf: Mapping[str, Any], defaults: Mapping[str, Any]) -> Request:
    """A key that says what the table says anyway counts as not given, so that a suite's own defaults hold; unless the
    DAG has another default for it.

    Airflow takes keys that no Param names, and its forms send every key: both end here.
    """
    given = {**defaults, **conf}
    flags = {name: given.pop(name, False) for name in FLAGS}
    wrong = [
        f"{name}: must be true or false (given: {shown(flag, 80)})"
        for name, flag in flags.items()
        if flag not in (True, False)
    ]
    usual = {name: field.default for name, field in Options.model_fields.items()}
    asked = {
        key: value
        for key, value in given.items()
        if key not in usual or (value is not None and (value != usual[key] or key in defaults))
    }
    try:
        options = make_options(asked, "the conf")
    except Problems as error:
        wrong = [*error.problems, *wrong]
    if wrong:
        raise Problems("the conf can't be used, so nothing was generated:", wrong)
    return Request(options, bool(flags["retry_failed"]), bool(flags["fresh"]))
