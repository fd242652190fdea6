"""A suite's prompts in MLflow's prompt registry: one prompt for a suite, a version for each content.

A version is found again by the digest of its content; the suite's name for it, such as v2-mentor, is an alias. Each
version lists the experiments that it was published for, and goes with the last of them.
"""

import re
from collections.abc import Iterable, Sequence

from tipbench.bench.records import StoredCell
from tipbench.bench.suites.suite import Prompt, Suite
from tipbench.bench.tracking.genai import GenAi, PromptVersion
from tipbench.bench.tracking.interface import Experiment

_DIGEST = "tipbench.prompt_digest"
_EXPERIMENTS = "tipbench.experiments"  # of a version: the ids of the experiments it was published for
_LINKED = "_mlflow_experiment_ids"  # the same of a prompt, by which MLflow's pages of an experiment find it
_RESERVED = re.compile(r"v[0-9]+|latest", re.IGNORECASE)  # as aliases
_LONGEST = 90_000  # characters of a prompt; MLflow refuses more than 100,000 as JSON


def publish_prompts(
    api: GenAi, experiment: Experiment, suite: Suite | None, cells: Iterable[StoredCell]
) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """Register the prompts of these cells; return name and version in the registry by digest, and notes."""
    versions = {cell.prompt_digest: cell.prompt for cell in cells}
    name = registry_name(experiment)
    templates = {one.digest: one for one in suite.prompts.values()} if suite else {}
    known = _known(api, name)
    missing = [digest for digest in versions if digest not in known and _fits(templates.get(digest))]
    if missing and api.prompt(name) is None:
        title = suite.title if suite else name
        api.create_prompt(
            name, f"Prompts of tipbench's suite: {title}", {"tipbench.suite": suite.name if suite else ""}
        )
    for digest in missing:
        template = templates[digest]
        tags = {_DIGEST: digest, "tipbench.prompt": template.version, _EXPERIMENTS: _listed([experiment.id])}
        api.create_prompt_version(name, _messages(template), template.description, tags)
    known = _known(api, name)
    _link(api, name, experiment, [known[digest] for digest in versions if digest in known])
    _set_aliases(api, name, {alias_of(versions[d]): known[d].version for d in versions if d in known})
    unknown = sorted({version for digest, version in versions.items() if digest not in known})
    notes = []
    if unknown:
        notes.append(
            f"The prompt registry has no {', '.join(unknown)}: the text that was used is not in the suite on this "
            "machine, or is too long for MLflow; --suite FOLDER says where the suite is."
        )
    return {digest: (name, known[digest].version) for digest in versions if digest in known}, notes


def take_back_prompts(api: GenAi, experiment: Experiment) -> None:
    """Remove the experiment from the versions it was published with, and versions that no experiment is left of."""
    name = registry_name(experiment)
    found = api.prompt(name)
    if found is None:
        return
    remaining: set[str] = set()
    for version in api.prompt_versions(name):
        if _DIGEST not in version.tags:
            remaining.add("")  # somebody's own version
            continue
        others = [one for one in _ids(version.tags.get(_EXPERIMENTS, "")) if one != experiment.id]
        if others:
            api.tag_prompt_version(name, version.version, _EXPERIMENTS, _listed(others))
        else:
            api.delete_prompt_version(name, version.version)
        remaining |= set(others)
    if remaining:
        api.tag_prompt(name, _LINKED, _listed(one for one in _ids(found.tags.get(_LINKED, "")) if one != experiment.id))
    else:
        api.delete_prompt(name)


def registry_name(experiment: Experiment) -> str:
    """Return the name of the experiment's suite in the registry, which takes few characters."""
    return f"tipbench-{re.sub(r'[^A-Za-z0-9_.-]+', '-', experiment.tags.get('tipbench.suite', ''))}"


def alias_of(version: str) -> str:
    """Return the alias for a suite's name of a prompt; MLflow reserves names such as v1 for its own versions."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", version)
    return f"prompt-{plain}" if _RESERVED.fullmatch(plain) else plain


def _known(api: GenAi, name: str) -> dict[str, PromptVersion]:
    """Return the registered versions by digest; of two of the same content, made at the same time, the later goes."""
    found: dict[str, PromptVersion] = {}
    for version in api.prompt_versions(name):
        digest = version.tags.get(_DIGEST)
        if digest in found:
            api.delete_prompt_version(name, version.version)
        elif digest:
            found[digest] = version
    return found


def _link(api: GenAi, name: str, experiment: Experiment, versions: Sequence[PromptVersion]) -> None:
    for version in versions:
        ids = _ids(version.tags.get(_EXPERIMENTS, ""))
        if experiment.id not in ids:
            api.tag_prompt_version(name, version.version, _EXPERIMENTS, _listed([*ids, experiment.id]))
    found = api.prompt(name) if versions else None
    if found and experiment.id not in (ids := _ids(found.tags.get(_LINKED, ""))):
        api.tag_prompt(name, _LINKED, _listed([*ids, experiment.id]))


def _set_aliases(api: GenAi, name: str, aliases: dict[str, str]) -> None:
    found = api.prompt(name) if aliases else None
    for alias, version in aliases.items():
        if found and found.aliases.get(alias) != version:
            api.set_prompt_alias(name, alias, version)


def _messages(prompt: Prompt) -> list[dict[str, str]]:
    system = [{"role": "system", "content": prompt.system.source}] if prompt.system else []
    return [*system, {"role": "user", "content": prompt.user.source}]


def _fits(prompt: Prompt | None) -> bool:
    return prompt is not None and sum(len(one["content"]) for one in _messages(prompt)) <= _LONGEST


def _ids(listed: str) -> list[str]:
    return [one for one in listed.split(",") if one]


def _listed(ids: Iterable[str]) -> str:
    return f",{','.join(ids)},"
