"""What journals that were left behind say about users' documents, and a list of removals, which they don't outlive."""

import errno
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from pydantic_core import from_json, to_json

from tipbench.core.errors import StateDamaged
from tipbench.core.files import PRIVATE, atomic_write, fsync_dir, make_private_folder
from tipbench.core.identity import text_digest
from tipbench.recommender.store.document import Document
from tipbench.recommender.store.interface import Key
from tipbench.recommender.store.journal import LeftSegment


def recovered_documents(segments: Iterable[LeftSegment]) -> dict[Key, Document]:
    """Return the newest version of every document in these segments.

    The first record of a key in a segment is the whole document, and so is every one that follows another process's.
    """
    newest: dict[Key, Document] = {}
    for segment in segments:
        for key, document in _documents(segment).items():
            if key not in newest or newest[key].revision < document.revision:
                newest[key] = document
    return newest


def _documents(segment: LeftSegment) -> dict[Key, Document]:
    documents: dict[Key, Document] = {}
    for record in segment.records():
        if "base" not in record:
            document = Document.from_data(record, segment.path, None)
            documents[document.key] = document
            continue
        key = Key(record["user_id"], record["policy"])
        if key not in documents or documents[key].revision != record["base"]:
            raise StateDamaged(
                f"{segment.path} changes a state of {key.user_id} that it does not have; restore a backup, or move the "
                "file elsewhere, which loses what it says"
            )
        documents[key].apply(record)
    return documents


class Removals:
    """Documents that were removed, with their last revision, so that a journal written before doesn't bring them back.

    Users are named by digests. The list is emptied when there are no journals left. Whoever changes it holds its lock.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "removed"

    def add(self, keys: Iterable[Key], revision: int) -> None:
        make_private_folder(self._path.parent)
        is_new = not self._path.exists()
        # The first line break ends a line that is torn.
        lines = b"\n" + b"".join(to_json([_digest(key), revision]) + b"\n" for key in keys)
        file = os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, PRIVATE)
        try:
            if os.write(file, lines) < len(lines):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
            os.fsync(file)
        finally:
            os.close(file)
        if is_new:
            fsync_dir(self._path.parent)

    def read(self) -> dict[str, int]:
        """Return the revisions by digest. A line that is torn is left out: its removal was not acknowledged."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        revisions: dict[str, int] = {}
        for line in content.split(b"\n"):
            with suppress(ValueError):
                digest, revision = from_json(line)
                revisions[digest] = max(revision, revisions.get(digest, 0))
        return revisions

    def forget(self, until: int | None = None) -> None:
        """Forget removals up to this revision, or all: there are no journals left from before them."""
        newer = {} if until is None else {key: revision for key, revision in self.read().items() if revision > until}
        if newer:
            content = b"".join(to_json([digest, revision]) + b"\n" for digest, revision in newer.items())
            atomic_write(self._path, content, mode=PRIVATE, durable=True, sole_writer=True)
        else:
            self._path.unlink(missing_ok=True)


def is_removed(document: Document, removals: Mapping[str, int]) -> bool:
    """Return whether this version of the document was removed afterwards."""
    return document.revision <= removals.get(_digest(document.key), -1)


def _digest(key: Key) -> str:
    return text_digest(f"{key.user_id}\n{key.policy}")
