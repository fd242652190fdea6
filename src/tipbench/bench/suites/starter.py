"""A small working suite for somebody to change into their own."""

import re
from importlib.resources import files
from pathlib import Path

from tipbench.bench.suites.load import built_in_suites
from tipbench.core.errors import InvalidInput

_PLACEHOLDER = "suite-name"
_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")


def write_starter(folder: Path) -> Path:
    """Writes the starter into a folder that does not exist yet."""
    name = folder.name
    if not _SLUG.fullmatch(name):
        raise InvalidInput(f"'{name}' is no name for a suite; take small letters, digits and dashes, such as 'blurbs'")
    if name in built_in_suites():
        raise InvalidInput(f"'{name}' is the name of a built-in suite; take another for yours")
    if folder.exists():
        raise InvalidInput(f"{folder} exists; take another name, or check it with 'tipbench suite check {folder}'")
    if not folder.parent.is_dir():
        raise InvalidInput(f"there is no folder {folder.parent} to make the suite in")
    source = Path(str(files("tipbench.bench.suites") / "starter_files"))
    for path in sorted(source.rglob("*.*")):
        target = folder / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path.read_text(encoding="utf-8").replace(_PLACEHOLDER, name), encoding="utf-8")
    return folder
