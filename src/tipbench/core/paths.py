"""Where everything under TIPBENCH_HOME lies, and who may read it."""

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from tipbench.core.identity import data_digest, text_digest
from tipbench.core.untrusted import shown

# what stands in a home, and what writing it may leave beside it
_OURS = re.compile(
    r"cache|experiments|journal|judged|locks|mlflow-artifacts|recommender|server|weights|\.?mlflow\.db([-.].*)?"
)


def database_path(home: Path) -> Path:
    """The MLflow database that is used where no server is."""
    return home / "mlflow.db"


def journal_folder(home: Path) -> Path:
    """What was generated and is not in MLflow yet."""
    return home / "journal"


def judged_folder(home: Path) -> Path:
    """What judges that run by themselves gave and is not applied yet."""
    return home / "judged"


def weights_folder(home: Path) -> Path:
    return home / "weights"


def cache_folder(home: Path) -> Path:
    return home / "cache"


def snapshot_folder(home: Path) -> Path:
    """The disk cache of what was read of experiments."""
    return cache_folder(home) / "looks"


def experiment_note_path(home: Path, experiment: str) -> Path:
    """Where the experiment is stored, as it was collected last on this machine."""
    return home / "experiments" / f"{text_digest(experiment)[:32]}.json"


def lock_path(home: Path, *what: str) -> Path:
    """The file of the lock on something that these words identify."""
    return home / "locks" / f"{data_digest(list(what))[:24]}.lock"


def server_folder(home: Path) -> Path:
    """Tokens, secrets and jobs of the admin server."""
    return home / "server"


def recommender_folder(home: Path) -> Path:
    return home / "recommender"


def state_folder(home: Path) -> Path:
    """What the recommender knows about its users."""
    return recommender_folder(home) / "state"


def decisions_folder(home: Path) -> Path:
    """The log of decisions and rewards."""
    return recommender_folder(home) / "decisions"


def signals_folder(home: Path) -> Path:
    """The log of what shadow policies would have chosen."""
    return recommender_folder(home) / "signals"


def gates_folder(home: Path) -> Path:
    """Records of promotion gates."""
    return recommender_folder(home) / "gates"


def replays_folder(home: Path) -> Path:
    """Records of replays."""
    return recommender_folder(home) / "replays"


def restrict_home(home: Path) -> str:
    """Take the rights of other users away from a home that an earlier version made; returns a sentence about it.

    A home with files that are not ours is left as it is, and so is one of another user: then the sentence is a warning.
    """
    try:
        found = home.stat()
        if not found.st_mode & 0o077 or not stat.S_ISDIR(found.st_mode):
            return ""
        foreign = sorted(entry.name for entry in home.iterdir() if not _OURS.fullmatch(entry.name))
    except OSError:  # whoever uses it will say so
        return ""
    if foreign or found.st_uid != os.getuid():
        why = f"it holds {shown(foreign[0])}, which tipbench did not make" if foreign else "it belongs to another user"
        return (
            f"Other users of this machine can read {home}. It was left so, because {why}; "
            f"'chmod -R go= {home}' hides it, or set TIPBENCH_HOME to a folder of its own."
        )
    for folder, _, names in os.walk(home):
        for path in (Path(folder), *(Path(folder, name) for name in names)):
            with suppress(OSError):  # gone meanwhile, or another user's; nobody gets past the home any more
                if not path.is_symlink():
                    path.chmod(stat.S_IMODE(path.stat().st_mode) & 0o700)
    return f"Other users of this machine could read {home}; now only you can."
