"""The grid that every tool gets: 4 models × 3 prompts × 80 scenarios, the same texts to all."""

from importlib.resources import files
from itertools import product
from pathlib import Path

import yaml

_ASK = "Write 5 short productivity tips for this person. Answer with only a JSON array of 5 strings."
PROMPTS = {
    "v1": f"{_ASK}\n\n",
    "v2-mentor": f"You are a kind mentor who knows how days go wrong. {_ASK}\n\n",
    "v3-few-shot": f'Good: "Call the garage before 09:00, then close the mail." Bad: "Stay positive!"\n{_ASK}\n\n',
}
_ROLES = ("electrician", "translator", "nurse", "clerk", "baker", "courier", "teacher", "gardener")
_TIMES = ("0710", "0945", "1130", "1315", "1500", "1640", "1820", "1930", "2045", "2200")


def scenarios() -> dict[tuple[str, str], str]:
    """(role, time) → text, about as long as a real scenario."""
    texts = {}
    for number, (role, time) in enumerate(product(_ROLES, _TIMES)):
        tasks = " ".join(
            f"Task {n}: finish item {number}-{n}, due at {n + 8}:00, takes {5 * n} minutes, and somebody waits for it."
            for n in range(1, 9)
        )
        texts[role, time] = f"A {role}, at {time}. Open tasks: {tasks}"
    return texts


def write_suite(folder: Path) -> Path:
    """The grid as a tipbench suite, with the built-in rubric."""
    (folder / "prompts").mkdir(parents=True)
    with files("tipbench").joinpath("bench/suites/data/tip/rubric.md").open("rb") as source:
        (folder / "rubric.md").write_bytes(source.read())
    (folder / "scenario.md").write_text("{{ text }}\n")
    for name, text in PROMPTS.items():
        (folder / "prompts" / f"{name}.md").write_text(f"---\ndescription: {name}\n---\n{text}{{{{ scenario }}}}\n")
    described = {
        "schema": 1,
        "name": "grid",
        "title": "The grid of the benchmarks",
        "experiment_prefix": "grid-bench-",
        "factors": {"role": {role: {} for role in _ROLES}, "time": {time: {} for time in _TIMES}},
        "output": {"format": "json_array", "max_tokens": 512},
    }
    (folder / "suite.yaml").write_text(yaml.safe_dump(described, sort_keys=False))
    entries = [
        {"id": f"{role}-{time}", "factors": {"role": role, "time": time}, "details": {"text": text}}
        for (role, time), text in scenarios().items()
    ]
    (folder / "scenarios.yaml").write_text(yaml.safe_dump(entries, sort_keys=False))
    return folder
