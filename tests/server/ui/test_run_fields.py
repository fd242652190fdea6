"""The form's fields come from the configuration table."""

from dataclasses import replace

from tests.server.ui.made_panel import NOW_S, MadeRequests
from tipbench.bench.options import Options, option_fields
from tipbench.server.ui.run_form import run_fields

CHOICES = MadeRequests().choices()


def test_all_options_are_there_once() -> None:
    fields = run_fields(CHOICES, NOW_S)
    keys = [one.key for one in (*fields.in_view, *fields.more)]
    left_out = {"models", "prompts", "suite", "mlflow_url"}
    assert sorted(keys) == sorted(field.key for field in option_fields() if field.key not in left_out)


def test_values_are_the_defaults_of_this_server() -> None:
    choices = replace(CHOICES, defaults=Options(n_tips=2, temperature=1.0, diversity=True, judge="model", max_tokens=7))
    fields = {one.key: one for group in vars(run_fields(choices, NOW_S)).values() for one in group}
    assert {key: fields[key].value for key in ("n_tips", "temperature", "judge", "max_tokens", "concurrency")} == {
        "n_tips": "2", "temperature": "1", "judge": "model", "max_tokens": "7", "concurrency": "",
    }  # fmt: skip
    assert fields["diversity"].is_on
    assert fields["experiment"].value == "tip-bench-2026-04-27"
    assert [value for value, _ in fields["unload"].choices] == ["call", "model"]
    assert [value for value, _ in fields["judge"].choices] == ["", "lexical", "model"]
