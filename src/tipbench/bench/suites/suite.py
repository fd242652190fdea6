"""A loaded suite: everything specific to a task, which the code itself must not know."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

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

    def messages(self, prompt: Prompt, scenario: Scenario, n_tips: int, diversity: bool) -> tuple[Message, ...]:
        """Render the prompt as it is sent. Raises InvalidInput if a template fails."""
        values = {**scenario.variables, "scenario": scenario.text, "n_tips": n_tips, "diversity": diversity}
        try:
            system = prompt.system.render(values) if prompt.system else ""
            user = Message("user", prompt.user.render(values))
        except TemplateProblem as problem:
            raise InvalidInput(
                f"prompt '{prompt.version}' of suite '{self.name}' fails for scenario {scenario.id} with {n_tips} "
                f"candidates: {problem}"
            ) from None
        return (Message("system", system), user) if system else (user,)
