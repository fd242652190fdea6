"""Loads a suite from its folder; all problems are reported together, by file and line."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache
from hashlib import sha256
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from tipbench.bench.records import GoldItem, Scenario
from tipbench.bench.suites.anchors import NAME as ANCHORS
from tipbench.bench.suites.anchors import read_anchors
from tipbench.bench.suites.checks import BY_SCENARIO, Check
from tipbench.bench.suites.front_matter import split_front_matter
from tipbench.bench.suites.registered import add_registered, registered_suites
from tipbench.bench.suites.rendering import GuardedTemplate, TemplateTooCostly, start_rendering
from tipbench.bench.suites.rubric import Rubric, check_problems, read_rubric, with_scenario_checks
from tipbench.bench.suites.suite import Prompt, Suite, prompt_values
from tipbench.bench.suites.templates import Template, TemplateProblem, TextTemplate
from tipbench.bench.suites.validation import PromptFront, ScenarioEntry, SuiteFile, validated
from tipbench.core.errors import InvalidInput, SuiteError
from tipbench.core.files import read_regular, read_text
from tipbench.core.identity import text_digest
from tipbench.core.located_yaml import DataPath, LocatedData, load_located
from tipbench.core.settings import Settings
from tipbench.core.untrusted import printable

_RESERVED = ("scenario", "n_tips", "diversity")
_INHERITED = ("rubric.md", "scenario.md")  # and prompts, from the suite that a suite is based on
_MAX_CACHED_FILES, _MAX_CACHED_BYTES = 200, 10_000_000  # of a suite
_CATEGORIES = "categories.yaml"  # what users' tips are about, for the recommender; optional
_PLACEHOLDER = "suite-name"
_PREFIX = re.compile(r"^experiment_prefix: (\S+)$", re.MULTILINE)
_BASED_ON = re.compile(r"^based_on: (\S+)", re.MULTILINE)
_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")


def built_in_suites() -> dict[str, Path]:
    """Return the folders of the suites that ship with the package, by name."""
    data = Path(str(files("tipbench.bench.suites") / "data"))
    return {folder.name: folder for folder in sorted(data.iterdir()) if (folder / "suite.yaml").is_file()}


def built_in_prefixes() -> tuple[str, ...]:
    """Return the prefixes of built-in suites' experiments, without loading the suites."""
    found = (_PREFIX.search((folder / "suite.yaml").read_text()) for folder in built_in_suites().values())
    return tuple(match[1] for match in found if match)


def pool_of(rubric_digest: str) -> str | None:
    """Return the built-in suite that has many more scenarios for this rubric, without loading suites; None if none."""
    for name, folder in built_in_suites().items():
        base = _base_of(folder)
        if base and text_digest((base / "rubric.md").read_text(encoding="utf-8")) == rubric_digest:
            return name
    return None


def categories_of(suite: str, settings: Settings) -> Path | None:
    """Return the categories of a suite, given by name or folder, or of the one that it is based on; None if none."""
    folder = {**registered_suites(settings), **built_in_suites()}.get(suite, Path(suite))
    folders = (folder, _base_of(folder))
    return next((found for one in folders if one and (found := one / _CATEGORIES).is_file()), None)


def _base_of(folder: Path) -> Path | None:
    """Return the folder of the built-in suite that a suite is based on, without loading either."""
    try:
        match = _BASED_ON.search((folder / "suite.yaml").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):  # reported where the suite is loaded
        return None
    return built_in_suites().get(match[1]) if match else None


def load_suite(name_or_path: str, settings: Settings | None = None) -> Suite:
    """Load a suite by its name, built-in or registered, or one from a folder. Raises SuiteError with every problem."""
    built_in = built_in_suites()
    if name_or_path in built_in:
        return _built_in(built_in[name_or_path])
    registered = {} if os.sep in name_or_path else registered_suites(settings or Settings())
    if name_or_path in registered:
        return _load_registered(name_or_path, registered[name_or_path])
    folder = _folder(name_or_path)
    if not os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises for a name that is too long
        known = ", ".join([*built_in, *registered])
        raise InvalidInput(
            f"there is no suite '{printable(name_or_path, 200)}': it is neither a name ({known}) nor a folder; "
            "'tipbench suite new NAME' makes one"
        )
    if folder in built_in.values():
        return _built_in(folder)
    return _load_folder(folder.absolute())


def _load_folder(folder: Path) -> Suite:
    """Load a suite whose files may change. While they don't, the loaded suite is cached: a large one takes seconds."""
    content = _content_digest(folder)
    return _Loader(folder, GuardedTemplate).load() if content is None else _load_content(folder, content)


@lru_cache(16)
def _load_content(folder: Path, content: str) -> Suite:  # noqa: ARG001 - a key of the cache
    return _Loader(folder, GuardedTemplate).load()


def _content_digest(folder: Path) -> str | None:
    """Return a digest of all files in a folder; None if they are too many or too large, or one can't be read."""
    digest, left = sha256(), _MAX_CACHED_BYTES
    try:
        paths = list(islice((path for path in folder.rglob("*") if not path.is_dir()), _MAX_CACHED_FILES + 1))
        for path in sorted(paths):
            content = read_regular(path, left)
            left -= len(content)
            digest.update(f"{path}\0{len(content)}\0".encode(errors="surrogateescape") + content)
    except OSError:  # reported where the file is needed
        return None
    return digest.hexdigest() if len(paths) <= _MAX_CACHED_FILES else None


def _folder(path: str) -> Path:
    folder = Path(path)
    with suppress(RuntimeError):  # the home folder of an unknown user
        folder = folder.expanduser()
    return folder


def _load_registered(name: str, folder: Path) -> Suite:
    if not folder.is_dir():
        raise InvalidInput(
            f"the suite '{name}' is registered in {folder}, which is not there; put it back, or "
            f"'tipbench suite unregister {name}'"
        )
    suite = _load_folder(folder)
    if suite.name != name:
        raise InvalidInput(
            f"the suite in {folder} was registered as '{name}' and is called '{suite.name}' now; change it back, or "
            f"'tipbench suite unregister {name}' and register it again"
        )
    return suite


def register_suite(path: str, settings: Settings) -> tuple[Suite, bool]:
    """Check the suite in a folder and register it by its name; return it, and whether it was not registered before.

    Raises SuiteError with every problem of the suite, InvalidInput if its name is taken.
    """
    folder = _folder(path)
    if not os.path.isdir(folder):  # noqa: PTH112 - as above
        raise InvalidInput(f"there is no folder '{printable(path, 200)}' on this machine; name one that holds a suite")
    suite = load_suite(str(folder.resolve()), settings)
    if suite.name in built_in_suites():
        raise InvalidInput(f"'{suite.name}' is the name of a built-in suite; give this one another in its suite.yaml")
    return suite, add_registered(suite.name, suite.folder, settings)


def load_suite_with(folder: Path, scenarios: str) -> Suite:
    """Load the suite in a folder as if its scenarios.yaml held this text. Raises SuiteError with every problem."""
    return _Loader(folder.absolute(), GuardedTemplate, {"scenarios.yaml": scenarios}).load()


@cache
def _built_in(folder: Path) -> Suite:
    """Load a suite of the package, which can't change while the process runs. A large one takes a third of a second."""
    return replace(_Loader(folder, TextTemplate).load(), is_built_in=True)


class _Loader:
    def __init__(self, folder: Path, make_template: type[Template], texts: Mapping[str, str] | None = None) -> None:
        """`texts` are used in place of the files of these names."""
        self.folder = folder
        self._texts = texts or {}
        self.problems: list[str] = []
        self._base: Path | None = None  # the folder of the suite that this one is based on
        self._make_template = make_template
        self._gave_up = False  # after one template took too long, no others are tried
        self._checks: dict[str, dict[str, Check]] = {}  # scenario → flag → the check that it declares
        self._check_lines: dict[tuple[str, str], int] = {}  # in scenarios.yaml, by scenario and flag

    def load(self) -> Suite:
        if self._make_template is GuardedTemplate:
            start_rendering()
        suite_file, located = self._suite_file()
        if suite_file and suite_file.based_on:
            self._base = self._base_folder(suite_file.based_on, located)
        rubric_text = self._text("rubric.md")
        rubric = None if rubric_text is None else read_rubric(rubric_text, "rubric.md", self.problems)
        scenarios = self._scenarios(suite_file)
        rubric = rubric and self._with_checks(rubric)
        prompts = self._prompts(scenarios)
        if suite_file:
            self._check_names(suite_file, located)
        anchors = self._anchors(scenarios, rubric)
        if self.problems or suite_file is None or rubric is None:
            raise SuiteError(f"the suite in {self.folder} can't be used:", self.problems)
        return Suite(
            name=suite_file.name,
            title=suite_file.title,
            folder=self.folder,
            experiment_prefix=suite_file.experiment_prefix,
            scenarios=scenarios,
            prompts=prompts,
            rubric=rubric,
            contract=suite_file.output,
            anchors=anchors,
        )

    def _base_folder(self, name: str, located: LocatedData) -> Path | None:
        found = built_in_suites().get(name)
        if found is None:
            known = ", ".join(built_in_suites())
            line = located.line(("based_on",))
            self.problems.append(
                f"suite.yaml:{line}: based_on: there is no built-in suite '{name}' (there are {known})"
            )
        return found

    def _path(self, name: str) -> Path:
        """Return where a file is: in this folder, else in that of the suite that this one is based on."""
        own = self.folder / name
        return own if self._base is None or own.exists() else self._base / name

    def _text(self, name: str) -> str | None:
        if name in self._texts:
            return self._texts[name]
        path = self._path(name) if name in _INHERITED or name.startswith("prompts/") else self.folder / name
        try:
            return read_text(path)
        except FileNotFoundError:
            self.problems.append(f"{name}: the file is missing")
        except OSError as error:
            self.problems.append(f"{name}: can't be read: {error.strerror}")
        return None

    def _suite_file(self) -> tuple[SuiteFile | None, LocatedData]:
        text = self._text("suite.yaml")
        located = load_located(text or "")
        if text is None:
            return None, located
        return validated(TypeAdapter(SuiteFile), located, "suite.yaml", self.problems), located

    def _check_names(self, suite_file: SuiteFile, located: LocatedData) -> None:
        self.problems.extend(
            f"suite.yaml:{located.line(('factors', factor))}: a factor can't be named '{factor}': "
            f"templates use that name for something else"
            for factor in suite_file.factors
            if factor in _RESERVED
        )
        if suite_file.cluster and suite_file.cluster not in suite_file.factors:
            self.problems.append(
                f"suite.yaml:{located.line(('cluster',))}: cluster: there is no factor '{suite_file.cluster}' "
                f"(it has {', '.join(suite_file.factors)})"
            )

    def _scenarios(self, suite_file: SuiteFile | None) -> tuple[Scenario, ...]:
        text, template_text = self._text("scenarios.yaml"), self._text("scenario.md")
        entries: list[ScenarioEntry] | None = None
        if text is not None:
            located = load_located(text)
            entries = validated(TypeAdapter(list[ScenarioEntry]), located, "scenarios.yaml", self.problems)
            if entries == []:
                self.problems.append("scenarios.yaml:1: there is no scenario; add at least one")
        template = None if template_text is None else self._template("scenario.md", template_text, 1)
        if suite_file is None or entries is None or template is None:
            return ()
        valid: list[tuple[ScenarioEntry, dict[str, Any]]] = []
        seen: dict[str, int] = {}
        for index, entry in enumerate(entries):
            line = located.line((index, "id"))
            if entry.id in seen:
                self.problems.append(
                    f"scenarios.yaml:{line}: the id '{entry.id}' is already used (line {seen[entry.id]})"
                )
            seen.setdefault(entry.id, line)
            if entry.checks:
                self._checks[entry.id] = entry.checks
                self._check_lines |= {(entry.id, flag): located.line((index, "checks", flag)) for flag in entry.checks}
            variables = self._variables(suite_file, entry, located, index)
            if variables is not None:
                valid.append((entry, variables))
        texts = self._rendered("scenario.md", template, 1, [own for _, own in valid], [entry.id for entry, _ in valid])
        return tuple(
            Scenario(entry.id, entry.factors, variables, text, suite_file.cluster)
            for (entry, variables), text in zip(valid, texts, strict=False)
            if text is not None
        )

    def _with_checks(self, rubric: Rubric) -> Rubric | None:
        """Return the rubric with the scenarios' checks; None if a check can't be used."""
        problems = check_problems(rubric, "rubric.md")
        if rubric.scenario_checks:
            problems.append("rubric.md:1: scenario_checks: declare a scenario's checks in scenarios.yaml ('checks:')")
        declared = {flag for own in self._checks.values() for flag in own}
        problems += [
            f"rubric.md:1: flag '{name}' is checked by scenario, and no scenario has a check for it; add 'checks:' "
            f"with '{name}' to a scenario"
            for name, flag in rubric.flags.items()
            if flag.check == BY_SCENARIO and name not in declared
        ]
        for scenario, own in self._checks.items():
            for flag, check in own.items():
                if problem := _scenario_check_problem(rubric, flag, check):
                    line = self._check_lines[scenario, flag]
                    problems.append(f"scenarios.yaml:{line}: scenario '{scenario}': checks.{flag}: {problem}")
        self.problems += problems
        return None if problems else with_scenario_checks(rubric, self._checks)

    def _anchors(self, scenarios: tuple[Scenario, ...], rubric: Rubric | None) -> tuple[GoldItem, ...]:
        """Read the anchors, which are optional; without them, a judge's drift can't be measured."""
        if rubric is None or not (self.folder / ANCHORS).exists():
            return ()
        text = self._text(ANCHORS)
        named = {scenario.id: scenario for scenario in scenarios}
        return () if text is None else read_anchors(text, ANCHORS, named, rubric, self.problems)

    def _variables(
        self, suite_file: SuiteFile, entry: ScenarioEntry, located: LocatedData, index: int
    ) -> dict[str, Any] | None:
        """Return the template variables of one scenario; None if its factors or details are invalid."""
        problems: list[tuple[DataPath, str]] = [
            (("factors",), f"factor '{factor}' has no level here")
            for factor in suite_file.factors
            if factor not in entry.factors
        ]
        for factor, level in entry.factors.items():
            if factor not in suite_file.factors:
                known = ", ".join(suite_file.factors)
                problems.append((("factors", factor), f"there is no factor '{factor}' in suite.yaml (it has {known})"))
            elif level not in suite_file.factors[factor]:
                known = ", ".join(suite_file.factors[factor])
                problems.append((("factors", factor), f"factor '{factor}' has no level '{level}' (it has {known})"))
        problems += [
            (("details", key), f"a detail can't be named '{key}': that name is already used")
            for key in entry.details
            if key in _RESERVED or key in suite_file.factors
        ]
        for path, message in problems:
            self.problems.append(f"scenarios.yaml:{located.line((index, *path))}: scenario '{entry.id}': {message}")
        if problems:
            return None
        levels = {factor: {**suite_file.factors[factor][lvl], "id": lvl} for factor, lvl in entry.factors.items()}
        return {**levels, **entry.details}

    def _prompts(self, scenarios: tuple[Scenario, ...]) -> dict[str, Prompt]:
        folders = [folder for folder in (self._base, self.folder) if folder]
        paths = sorted({path.name: path for folder in folders for path in (folder / "prompts").glob("*.md")}.values())
        if not paths:
            self.problems.append("prompts/: there is no prompt; add a file such as prompts/v1.md")
        prompts = {}
        for path in paths:
            prompt = self._prompt(f"prompts/{path.name}", path.stem, scenarios)
            if prompt:
                prompts[prompt.version] = prompt
        return prompts

    def _prompt(self, name: str, version: str, scenarios: tuple[Scenario, ...]) -> Prompt | None:
        text = self._text(name)
        if text is None:
            return None
        if "," in version or version != version.strip():
            self.problems.append(f"{name}: a prompt's name can't contain commas or surrounding spaces")
        front, body, body_line, system_line = PromptFront(), text, 1, 1
        split = split_front_matter(text)
        if split:
            located = load_located(split.yaml, split.yaml_line)
            checked = validated(TypeAdapter(PromptFront), located, name, self.problems)
            if checked is None:
                return None
            front, system_line = checked, located.text_lines.get(("system",), 1)
            body, body_line = split.body, split.body_line
        elif text.startswith("---\n"):
            self.problems.append(f"{name}:1: the front matter is not closed; add a line '---' after it")
            return None
        user = self._template(name, body, body_line)
        system = self._template(name, front.system, system_line) if front.system else None
        if user is None or (front.system and system is None):
            return None
        if not body.strip():
            self.problems.append(f"{name}:{body_line}: the prompt is empty")
        for template, line in ((user, body_line), (system, system_line)):
            if template:
                self._check_renders(name, template, line, scenarios)
        return Prompt(version, front.description, system, user, text_digest(text))

    def _check_renders(self, name: str, template: Template, line: int, scenarios: tuple[Scenario, ...]) -> None:
        """Render the template for every scenario, so that no error is left to surface in the middle of a run."""
        cases = [(scenario, *how) for scenario in scenarios for how in ((1, False), (5, True))]
        values = [prompt_values(*case) for case in cases]
        for text in self._rendered(name, template, line, values, [case[0].id for case in cases]):
            if text is None:
                return

    def _template(self, name: str, source: str, first_line: int) -> Template | None:
        try:
            return None if self._gave_up else self._make_template(source)
        except TemplateProblem as problem:
            self._gave_up |= isinstance(problem, TemplateTooCostly)
            self.problems.append(f"{name}:{first_line + problem.line - 1}: {problem}")
            return None

    def _rendered(
        self, name: str, template: Template, first_line: int, values: Sequence[dict[str, Any]], scenarios: Sequence[str]
    ) -> Iterator[str | None]:
        """Render the template with each scenario's values; yield None where it fails. Ends where it is too costly."""
        if self._gave_up:
            return
        for text, scenario in zip(template.render_each(values), scenarios, strict=True):
            if not isinstance(text, TemplateProblem):
                yield text
                continue
            message = f"{name}:{first_line + text.line - 1}: {text}"
            if not any(known.startswith(message) for known in self.problems):
                self.problems.append(f"{message} (for scenario {scenario})")
            self._gave_up |= isinstance(text, TemplateTooCostly)
            yield None
            if self._gave_up:
                return


def _scenario_check_problem(rubric: Rubric, flag: str, check: Check) -> str | None:
    if flag not in rubric.flags:
        return f"there is no flag '{flag}' in rubric.md (it has {', '.join(rubric.flags) or 'none'})"
    if rubric.flags[flag].check is None:
        return f"the judge answers this flag; give it 'check: {BY_SCENARIO}' in rubric.md"
    if check.check in (None, BY_SCENARIO):
        return "it does not say what to check; add 'check', such as 'check: contains'"
    return check.problem


# The starter: a small working suite that users adapt to their own task.


def write_starter(folder: Path) -> Path:
    """Write the starter suite into a folder that must not exist yet; return the folder. Raises InvalidInput."""
    name = folder.name
    if not _SLUG.fullmatch(name):
        raise InvalidInput(
            f"'{name}' can't be the name of a suite; use lower-case letters, digits and dashes, such as 'blurbs'"
        )
    if name in built_in_suites():
        raise InvalidInput(f"'{name}' is the name of a built-in suite; choose another one")
    if folder.exists():
        raise InvalidInput(
            f"{folder} already exists; choose another name, or check it with 'tipbench suite check {folder}'"
        )
    if not folder.parent.is_dir():
        raise InvalidInput(f"there is no folder {folder.parent} to make the suite in")
    source = Path(str(files("tipbench.bench.suites") / "starter_files"))
    for path in sorted(source.rglob("*.*")):
        target = folder / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path.read_text(encoding="utf-8").replace(_PLACEHOLDER, name), encoding="utf-8")
    return folder
