"""A backup's file comes back as it was written, or not at all."""

import gzip
import io
import os
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tipbench.core.errors import InvalidInput
from tipbench.maintenance import archive
from tipbench.maintenance.archive import ArchiveReader, ArchiveWriter, Damaged, Head

HEAD = Head(1, "0.1.0", "/var/lib/tipbench", "2026-04-27T18:05:12Z")
FILES = {
    "recommender/decisions/1.jsonl": b"{}\n" * 4_000,
    "recommender/state/" + "u" * 64 + "_egreedy_v2.json": b"{}",
    f"server/{'x' * 200}/ünïcode \\ and\nlines": b"\x00\xff",
    "empty": b"",
}


def written(files: dict[str, bytes] = FILES, head: Head = HEAD) -> bytes:
    target = io.BytesIO()
    with ArchiveWriter(target, head) as writer:
        for name, content in files.items():
            writer.add(name, content)
    return target.getvalue()


def extracted(content: bytes, folder: Path) -> dict[str, bytes]:
    folder.mkdir(exist_ok=True)
    ArchiveReader(io.BytesIO(content)).extract(folder, lambda _: None)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_files_come_back_with_their_permissions_for_the_owner_alone(tmp_path: Path) -> None:
    content = written()
    reader = ArchiveReader(io.BytesIO(content))
    sizes: list[int] = []
    assert reader.head == HEAD
    assert reader.extract(tmp_path, sizes.append) == len(FILES)
    assert sorted(sizes) == sorted(map(len, FILES.values()))
    assert {
        str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()
    } == FILES
    assert {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*") if path.is_file()} == {0o600}


@pytest.mark.parametrize("in_memory", [10, 1_000_000])
def test_an_open_file_is_copied_as_far_as_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: int
) -> None:
    monkeypatch.setattr(archive, "_IN_MEMORY", in_memory)
    log = tmp_path / "log"
    log.write_bytes(b"line\n" * 1_000)
    log.chmod(0o444)
    target = io.BytesIO()
    with ArchiveWriter(target, HEAD) as writer, log.open("rb") as file:
        writer.add_open("log", file)
    assert (writer.files, writer.bytes) == (1, 5_000)
    assert extracted(target.getvalue(), tmp_path / "out") == {"log": b"line\n" * 1_000}
    assert (tmp_path / "out" / "log").stat().st_mode & 0o777 == 0o400


def test_a_large_file_that_becomes_shorter_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_IN_MEMORY", 10)
    log = tmp_path / "log"
    log.write_bytes(b"x" * 100)
    target = io.BytesIO()
    with log.open("rb") as file:
        file.seek(50)  # as if the rest were gone
        with pytest.raises(OSError, match="became shorter while it was copied"), ArchiveWriter(target, HEAD) as writer:
            writer.add_open("log", file)
    with pytest.raises(Damaged):
        extracted(target.getvalue(), tmp_path / "out")


def test_sha256sum_and_tar_are_enough(tmp_path: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(written({"a": b"1", "b/c": b"2"}))) as tar:
        assert tar.getnames() == ["BACKUP.json", "home/a", "home/b/c", "SHA256SUMS"]
        sums = tar.extractfile("SHA256SUMS")
        assert sums
        assert "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b  home/a\n" in sums.read().decode()


def test_a_backup_that_is_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    content = written({"a": os.urandom(700), "b": b"text"})
    for length in range(0, len(content), 7):
        with pytest.raises(Damaged):
            extracted(content[:length], tmp_path / str(length))


def test_a_bit_that_flips_anywhere_is_noticed_or_changes_nothing(tmp_path: Path) -> None:
    files = {"a": os.urandom(700), "b": b"text"}
    content = written(files)
    for number in range(0, len(content), 5):
        flipped = bytearray(content)
        flipped[number] ^= 1 << number % 8
        with suppress(Damaged):
            assert extracted(bytes(flipped), tmp_path / str(number)) == files, "it was in gzip's own header"


def test_no_backup_and_one_of_a_newer_version_are_refused(tmp_path: Path) -> None:
    for content in (b"", b"a letter", gzip.compress(b"a letter"), gzip.compress(b"x" * 2_000)):
        with pytest.raises(Damaged):
            ArchiveReader(io.BytesIO(content))
    with pytest.raises(InvalidInput, match=r"made by tipbench '7\.0'; use that version"):
        ArchiveReader(io.BytesIO(written(head=Head(2, "7.0", "/", ""))))


@pytest.mark.parametrize(("was", "becomes"), [(b'"format": 1', b'"format": 3'), (b"00000001274", b"40000001274")])
def test_a_number_that_a_flipped_bit_makes_larger_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, was: bytes, becomes: bytes
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1 << 30))
    content = written({"a": bytes(700)})
    plain = gzip.decompress(content)
    assert was in plain
    checksum_and_size = content[-8:]
    flipped = gzip.compress(plain.replace(was, becomes))[:-8] + checksum_and_size
    with pytest.raises(Damaged, match="CRC check failed"):
        extracted(flipped, tmp_path / "out")


# Made to do harm


def entry(name: str, **attributes: Any) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    for key, value in attributes.items():
        setattr(made, key, value)
    return made


def with_entries(*entries: tarfile.TarInfo) -> bytes:
    """A backup with entries that a writer would not write."""
    target = io.BytesIO()
    with ArchiveWriter(target, HEAD) as writer:
        for one in entries:
            writer._tar.fileobj.write(one.tobuf(tarfile.GNU_FORMAT))
    return target.getvalue()


@pytest.mark.parametrize(
    "name",
    ["../out", "home/../../out", "home//out", "/out", "home/", "home/./out", "home", "out", "home/a/..", "\\out"],
)
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(Damaged, match="is no file of a home"):
        extracted(with_entries(entry(name)), tmp_path / "inner")
    assert list(tmp_path.rglob("*")) == [tmp_path / "inner"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_there_are_only_files(tmp_path: Path, kind: bytes) -> None:
    with pytest.raises(Damaged, match="holds what is no file"):
        extracted(with_entries(entry("home/a", type=kind, linkname="/etc/passwd")), tmp_path / "inner")


@pytest.mark.parametrize("second", ["home/a", "home/a/b"])
def test_no_file_is_written_twice_or_below_another(tmp_path: Path, second: str) -> None:
    with pytest.raises(Damaged, match="not a name of its own"):
        extracted(with_entries(entry("home/a"), entry(second)), tmp_path / "inner")


def negative(block: bytearray) -> None:
    block[124:136] = b"-0000000005\0"


def huge_name(block: bytearray) -> None:
    block[156:157] = tarfile.GNUTYPE_LONGNAME
    block[124:136] = b"%011o\0" % (1 << 30)


@pytest.mark.parametrize(("change", "says"), [(negative, "is no number"), (huge_name, "name in it is too long")])
def test_numbers_in_headers_are_not_trusted(tmp_path: Path, change: Callable[[bytearray], None], says: str) -> None:
    content = bytearray(gzip.decompress(with_entries(entry("home/marked"))))
    at = content.index(b"home/marked")
    block = content[at : at + 512]
    change(block)
    content[at : at + 512] = block
    with pytest.raises(Damaged, match=says):
        extracted(gzip.compress(bytes(content)), tmp_path / "inner")


def test_more_than_the_disk_has_room_for_is_refused_before_it_is_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="needs more space than is free"):
        extracted(with_entries(entry("home/a", size=1 << 60)), tmp_path / "inner")
    assert not list(tmp_path.rglob("a"))


def test_without_its_sums_or_with_more_after_them_it_is_refused(tmp_path: Path) -> None:
    content = gzip.decompress(written({"a": b"1"}))
    without = content[: content.index(b"SHA256SUMS")] + bytes(10_240)
    with pytest.raises(Damaged, match="its end is missing"):
        extracted(gzip.compress(without), tmp_path / "without")
    more = content[:-10_240].rstrip(b"\0") + b"\n" + entry("home/b").tobuf()
    with pytest.raises(Damaged):
        extracted(gzip.compress(more), tmp_path / "more")
    for tail in (bytes(2 << 20), b"more"):
        with pytest.raises(Damaged, match="not what was written"):
            extracted(gzip.compress(content + tail), tmp_path / f"tail{len(tail)}")
    size_at = content.index(b"SHA256SUMS") + 124
    longer = content[:size_at] + b"%011o" % (1 << 32) + content[size_at + 11 :]
    with pytest.raises(Damaged, match="not what was written"):
        extracted(gzip.compress(longer), tmp_path / "longer")
    other = content.replace(b"6b86b273", b"6b86b274")
    with pytest.raises(Damaged, match="not what was written"):
        extracted(gzip.compress(other), tmp_path / "other")
