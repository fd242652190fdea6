"""A loaded suite: everything specific to a task, which the code itself must not know."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

from tipbench.bench.options import Options
from tipbench.bench.records import GoldItem, Message, Scenario
from tipbench.bench.suites.contract import Contract
from tipbench.bench.suites.rubric import Rubric
from tipbench.bench.suites.templates import Template, TemplateProblem
from tipbench.core.errors import InvalidInput


@dataclass(frozen=True)
class Prompt:
    """One prompt version."""

    version: str
    description: str
    system: Template | None
    user: Template
    digest: str


@dataclass(frozen=True)
class Suite:
    """Scenarios, prompts, rubric and output contract of one task."""

    name: str
    title: str
    folder: Path
    experiment_prefix: str
    scenarios: tuple[Scenario, ...]
    prompts: Mapping[str, Prompt]
    rubric: Rubric
    contract: Contract
    anchors: tuple[GoldItem, ...] = ()
    is_built_in: bool = False

    def apply_defaults(self, options: Options) -> Options:
        """Return the options with this suite's defaults for whatever was not given."""
        return options.with_suite_defaults(self.experiment_prefix, tuple(self.prompts), self.contract.format == "text")

    def prompt(self, version: str) -> Prompt:
        if version not in self.prompts:
            raise InvalidInput(
                f"suite '{self.name}' has no prompt '{version}'; it has {', '.join(self.prompts)} (in {self.folder})"
            )
        return self.prompts[version]

    def first_scenarios(self, n: int) -> tuple[Scenario, ...]:
        """Return `n` scenarios, or all of them if `n` is 0; raise InvalidInput if there are fewer.

        They are taken in turn from the levels of the suite's cluster, so that 4 scenarios are of 4 personas: scenarios
        of one cluster are not independent evidence. They are returned in the suite's order.
        """
        if n > len(self.scenarios):
            raise InvalidInput(
                f"--n-scenarios {n} is more than suite '{self.name}' has: {len(self.scenarios)} (0 takes all)"
            )
        if not n:
            return self.scenarios
        rank: dict[str, int] = {}  # scenario → how many of its cluster come before it
        seen: Counter[str] = Counter()
        for scenario in self.scenarios:
            level = scenario.factors.get(scenario.cluster or "", scenario.id)
            rank[scenario.id] = seen[level]
            seen[level] += 1
        chosen = {one.id for one in sorted(self.scenarios, key=lambda one: rank[one.id])[:n]}
        return tuple(scenario for scenario in self.scenarios if scenario.id in chosen)

    def messages(
        self, prompt: Prompt, scenarios: Sequence[Scenario], n_tips: int, diversity: bool
    ) -> Iterator[tuple[Message, ...]]:
        """Render the prompt as it is sent for each of the scenarios. Raises InvalidInput if a template fails."""
        values = [prompt_values(scenario, n_tips, diversity) for scenario in scenarios]
        systems = prompt.system.render_each(values) if prompt.system else repeat("")
        for scenario, system, user in zip(scenarios, systems, prompt.user.render_each(values), strict=False):
            for text in (system, user):
                if isinstance(text, TemplateProblem):
                    raise InvalidInput(
                        f"prompt '{prompt.version}' of suite '{self.name}' fails for scenario {scenario.id} with "
                        f"{n_tips} candidates: {text}"
                    )
            messages = (Message("system", str(system)), Message("user", str(user)))
            yield messages if system else messages[1:]


def prompt_values(scenario: Scenario, n_tips: int, diversity: bool) -> dict[str, Any]:
    """Return what a prompt's template is rendered with."""
    return {**scenario.variables, "scenario": scenario.text, "n_tips": n_tips, "diversity": diversity}
