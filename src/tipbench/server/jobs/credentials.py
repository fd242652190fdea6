"""Jobs are listed, shown and kept: nothing secret may be in what they are asked to do."""

from tipbench.bench.options import Options
from tipbench.bench.tracking.embedded import SCHEME
from tipbench.core.errors import Problems
from tipbench.core.untrusted import without_credentials

_INSTEAD = {
    "ollama_url": "leave them out; an Ollama that asks for them can't be used by a job",
    "mlflow_url": "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD where the server is started",
}


def refuse_credentials(options: Options) -> None:
    """All that is wrong at once. What stands behind a question mark is mostly a key, too."""
    problems = []
    for key, instead in _INSTEAD.items():
        url = getattr(options, key) or ""
        if url.startswith(SCHEME):
            continue
        if "@" in url:
            problems.append(f"{key}: holds a user name or password (for {without_credentials(url)}); {instead}")
        elif "?" in url or "#" in url:
            problems.append(f"{key}: holds more than an address; leave out what stands from the ? or # on")
    if problems:
        raise Problems("a job's addresses are shown to others:", problems)
