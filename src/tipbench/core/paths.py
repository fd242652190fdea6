"""Paths of everything under TIPBENCH_HOME, and its permissions."""

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from tipbench.core.identity import data_digest, text_digest
from tipbench.core.untrusted import shown

# The entries of a home, including files that writing them may leave behind.
_OURS = re.compile(
    r"backups\.jsonl|cache|calibrations|experiments|journal|judged|locks|mlflow-artifacts|recommender|server|weights|judges\.toml|suites\.json|\.?mlflow\.db([-.].*)?"
)


def database_path(home: Path) -> Path:
    """Path of the MLflow database that is used when there is no server."""
    return home / "mlflow.db"


def journal_folder(home: Path) -> Path:
    """Folder of generated answers that are not in MLflow yet."""
    return home / "journal"


def judged_folder(home: Path) -> Path:
    """Folder of scores from automatic judges that are not applied yet."""
    return home / "judged"


def agent_folder(home: Path, batch: str) -> Path:
    """Folder of what an agent has answered for a batch that is not applied yet."""
    return judged_folder(home) / f"agent-{text_digest(batch)[:24]}"


def calibrations_folder(home: Path) -> Path:
    """Folder of what automatic judges made of the anchors."""
    return home / "calibrations"


def weights_folder(home: Path) -> Path:
    return home / "weights"


def cache_folder(home: Path) -> Path:
    return home / "cache"


def snapshot_folder(home: Path) -> Path:
    """Folder of the disk cache of experiment snapshots."""
    return cache_folder(home) / "looks"


def experiment_note_path(home: Path, experiment: str) -> Path:
    """Path of the note that says where this machine last stored the experiment."""
    return home / "experiments" / f"{text_digest(experiment)[:32]}.json"


def lock_path(home: Path, *resource: str) -> Path:
    """Path of the lock file for the resource that these words identify."""
    return home / "locks" / f"{data_digest(list(resource))[:24]}.lock"


def server_folder(home: Path) -> Path:
    """Folder of the admin server's tokens, secrets and jobs."""
    return home / "server"


def recommender_folder(home: Path) -> Path:
    return home / "recommender"


def state_folder(home: Path) -> Path:
    """Folder of the recommender's user states."""
    return recommender_folder(home) / "state"


def decisions_folder(home: Path) -> Path:
    """Folder of the log of decisions and rewards."""
    return recommender_folder(home) / "decisions"


def signals_folder(home: Path) -> Path:
    """Folder of the log of the choices of shadow policies."""
    return recommender_folder(home) / "signals"


def gates_folder(home: Path) -> Path:
    """Folder of the records of promotion gates."""
    return recommender_folder(home) / "gates"


def replays_folder(home: Path) -> Path:
    """Folder of the records of replays."""
    return recommender_folder(home) / "replays"


def restrict_home(home: Path) -> str:
    """Remove other users' permissions from a home that an earlier version created; return a message for the user.

    A home that contains foreign files or belongs to another user is left as it is, and the message is a warning. The
    message is empty if there was nothing to do.
    """
    try:
        found = home.stat()
        if not found.st_mode & 0o077 or not stat.S_ISDIR(found.st_mode):
            return ""
        foreign = sorted(entry.name for entry in home.iterdir() if not _OURS.fullmatch(entry.name))
    except OSError:  # reported when the home is used
        return ""
    if foreign or found.st_uid != os.getuid():
        why = f"it holds {shown(foreign[0])}, which tipbench did not make" if foreign else "it belongs to another user"
        return (
            f"Other users of this machine can read {home}. That was not changed, because {why}; "
            f"'chmod -R go= {home}' hides it, or set TIPBENCH_HOME to a folder of its own."
        )
    for folder, _, names in os.walk(home):
        for path in (Path(folder), *(Path(folder, name) for name in names)):
            with suppress(OSError):  # removed meanwhile, or another user's; the home itself already blocks access
                if not path.is_symlink():
                    path.chmod(stat.S_IMODE(path.stat().st_mode) & 0o700)
    return f"Other users of this machine could read {home}; now only you can."
