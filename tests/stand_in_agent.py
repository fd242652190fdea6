"""A stand-in for a coding agent's command-line program, with the habits and faults of the real ones.

    python stand_in_agent.py [--faults FILE]

It reads instructions on stdin, scores the items in them as a faithful judge would, and answers in the envelope of
`claude -p --output-format json`. With --faults, each call takes the next word of the file as its fault, in a lock, and
behaves well once there are none left: prose, fence, half, wrong_slot, out_of_range, time_out, refusal, rate_limit,
crash, error_envelope, file, plain, nothing. `--version` prints a version, `mcp add …` notes the server in .mcp.json.
"""

import argparse
import fcntl
import json
import os
import re
import shlex
import sys
import time
from pathlib import Path
from typing import Any


def path_with_claude(folder: Path) -> str:
    """Install the stand-in as a program called claude, and return a PATH that has it, and tipbench."""
    folder.mkdir()
    program = folder / "claude"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(__file__)} "$@"\n')
    program.chmod(0o755)
    return f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"


def items_in(prompt: str) -> list[dict[str, Any]]:
    """The items of a part, from between the delimiters."""
    match = re.search(r"<<<material (\w+)\n(.*)\nend \1>>>", prompt, re.DOTALL)
    assert match, "no delimited material in the instructions"
    items: list[dict[str, Any]] = json.loads(match[2])["items"]
    return items


def scores_of(prompt: str) -> dict[str, dict[str, Any]]:
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.integration.filling import faithful_scores

    scales = {
        name: (int(low), int(high))
        for name, low, high in re.findall(r"- `(\w+)`: a whole number from (\d+) to (\d+)", prompt)
    }
    return {
        item["slot"]: {**faithful_scores(item["text"], scales), "note": "as the rubric says"}
        for item in items_in(prompt)
    }


def next_fault(path: str | None) -> str:
    if path is None:
        return ""
    with Path(path).open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        fault, *rest = file.read().split() or [""]
        file.seek(0)
        file.truncate()
        file.write(" ".join(rest))
        return fault


def enveloped(text: str, is_error: bool = False) -> str:
    usage = {"input_tokens": 1000, "cache_read_input_tokens": 200, "output_tokens": 300}
    return json.dumps(
        {"type": "result", "is_error": is_error, "result": text, "total_cost_usd": 0.01, "usage": usage, "num_turns": 1}
    )


def answer(scores: dict[str, Any], fault: str) -> str:
    whole = json.dumps(scores, indent=1)
    some = dict(list(scores.items())[: len(scores) // 2])
    return {
        "prose": f"I have read the rubric. Here are my scores:\n\n{whole}\n\nLet me know if you need anything else!",
        "fence": f"```json\n{whole}\n```",
        "half": whole[: len(whole) // 2],
        "wrong_slot": json.dumps({"zzzzzzzz": next(iter(scores.values())), **some}),
        "out_of_range": json.dumps({slot: {**one, next(iter(one)): 9} for slot, one in scores.items()}),
        "refusal": "I can't help with scoring these texts.",
    }.get(fault, whole)


def judge_folder() -> int:
    """As an agent with tools does when it is asked to follow INSTRUCTIONS.md."""
    rules = Path("INSTRUCTIONS.md").read_text()
    for path in sorted(Path("parts").iterdir()):
        prompt = f"{rules}\n<<<material folder\n{path.read_text()}\nend folder>>>"
        (Path("scores") / path.name).write_text(json.dumps(scores_of(prompt)))
    print("I have scored all parts.")
    return 0


def add_mcp_server(words: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--transport", choices=["stdio", "http"], default="stdio")
    parser.add_argument("--header")
    parser.add_argument("name")
    parser.add_argument("where", nargs="+")
    asked = parser.parse_args(words)
    if asked.transport == "http":
        key, _, value = asked.header.partition(": ")
        server = {"type": "http", "url": asked.where[0], "headers": {key: value}}
    else:
        server = {"command": asked.where[0], "args": asked.where[1:]}
    Path(".mcp.json").write_text(json.dumps({"mcpServers": {asked.name: server}}))
    return 0


def main() -> int:
    if sys.argv[1:3] == ["mcp", "add"]:
        return add_mcp_server(sys.argv[3:])
    if "--version" in sys.argv:
        print("2.1.7 (Stand-in Code)")
        return 0
    if any("INSTRUCTIONS.md" in word for word in sys.argv):
        return judge_folder()
    fault = next_fault(sys.argv[sys.argv.index("--faults") + 1] if "--faults" in sys.argv else None)
    prompt = sys.stdin.read()
    if fault == "time_out":
        time.sleep(600)
    if fault == "rate_limit":
        print("API Error: 429 rate_limit_error: too many requests", file=sys.stderr)
        return 1
    if fault == "crash":
        print(f"unexpected end {'x' * 300}", file=sys.stderr)
        return 134
    if fault == "nothing":
        return 0
    if fault == "error_envelope":
        print(enveloped("Credit balance is too low", is_error=True))
        return 0
    scores = scores_of(prompt)
    if fault == "file":
        Path("scores.json").write_text(json.dumps(scores))
        print(enveloped("The scores are in scores.json."))
    else:
        text = answer(scores, fault)
        print(text if fault == "plain" else enveloped(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
