"""Prints the licence of every package that a lock file installs: ``python deploy/licences.py requirements.lock``.

It reads the packages' own metadata in the environment that runs it, which must have been installed from the lock.
"""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

UNKNOWN = "unknown"
_LONGEST = 60  # of a name; some packages have a licence's whole text where its name belongs
_CLASSIFIER = "License :: "
_BUNDLED = (  # parts of our own wheel, and weights that `tipbench pull` fetches
    ("htmx", "2.0.11", "0BSD"),
    ("smollm2:135m", "weights", "Apache-2.0"),
    ("gemma3:270m", "weights", "Gemma Terms of Use"),
)


def locked(text: str) -> Iterator[Requirement]:
    """Yield what a lock file installs on this system."""
    for line in re.findall(r"^[^\s#].*?==.*?(?= *\\?$)", text, re.MULTILINE):
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate():
            yield requirement


def licence(package: Distribution) -> str:
    """Return the licence as the package's metadata name it, the most exact field first, or the file that has it."""
    fields = package.metadata.json
    if expression := fields.get("license_expression"):
        return str(expression)
    classifiers = [one.removeprefix(_CLASSIFIER) for one in fields.get("classifier", ()) if _CLASSIFIER in one]
    classified = [one.rpartition(" :: ")[2] for one in classifiers if one != "OSI Approved"]  # which says no name
    named = str(fields.get("license", "")).strip()
    if named and "\n" not in named and len(named) <= _LONGEST and named.lower() != "unknown" and len(classified) < 2:
        return named
    if classified:
        return " or ".join(classified)
    files = [str(path) for path in package.files or () if re.match("licen[cs]e|copying", path.name, re.IGNORECASE)]
    return f"{UNKNOWN}: see {files[0]}" if files else UNKNOWN


def rows(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield name, version and licence of each package; raise SystemExit if one is not installed as locked."""
    for requirement in locked(text):
        try:
            package = distribution(requirement.name)
        except PackageNotFoundError:
            sys.exit(f"{requirement} is in the lock and not installed; run 'make setup' first")
        if package.version not in requirement.specifier:
            sys.exit(f"{requirement} is locked and {package.version} is installed; run 'make setup' first")
        yield requirement.name, package.version, licence(package)


def main() -> int:
    """Print the list, and below it what nobody could tell from the metadata."""
    found = [*rows(Path(sys.argv[1]).read_text(encoding="utf-8")), *_BUNDLED]
    for name, version, named in found:
        print(f"{name:<40} {version:<22} {named}")
    unknown = [name for name, _, named in found if named.startswith(UNKNOWN)]
    if unknown:
        print(f"Not said in the metadata of: {', '.join(unknown)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
