"""Gets the files of a data set: from a folder, or from the network; unpacks what archives hold."""

import gzip
import hashlib
import json
import logging
import os
import shutil
import tarfile
import zipfile
from pathlib import Path
from typing import IO, Dict, Iterator, List, Optional, Tuple

from docnmt_fairseq.corpus.files import DAMAGED, atomic_write_bytes, partial_path
from docnmt_fairseq.corpus.steps import sha256
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.recipes.dataset import DatasetConfig, Download
from docnmt_fairseq.recipes.transfer import about, transfer

BLOCK = 1 << 20

logger = logging.getLogger(__name__)


class Source:
    """The files of a data set; a file that is there already is neither fetched nor unpacked again.

    But where ``raw`` has another archive now than the one that was unpacked, its files are.

    Args:
        dataset: its configuration.
        folder: where downloads and unpacked files are kept.
        raw: a folder with the files, or with the archives that hold them; None: they are downloaded.
    """

    def __init__(self, dataset: DatasetConfig, folder: Path, raw: Optional[Path] = None):
        if raw is not None and not raw.is_dir():
            raise InputError(f"--raw {raw}: no such folder")
        self.dataset, self.folder, self.raw = dataset, folder, raw
        self.unpacked = folder / "unpacked"
        self._there: Dict[str, List[Path]] = {}
        if raw is not None:
            for path in sorted(raw.rglob("*"), key=lambda path: (len(path.parts), str(path))):
                self._there.setdefault(path.name, []).append(path)

    def get(self, name: str) -> Path:
        """Where a file is.

        Raises:
            InputError: it cannot be had; says from where it can.
        """
        if name in self._there:
            return self._there[name][0]
        unpacked = self.unpacked / name
        if unpacked.exists() and self._is_of_its_archive(name):
            return unpacked
        for download in self.dataset.downloads:
            if download.name == name and download.urls and self.raw is None:
                return fetch(download, self.folder / "downloads" / name, self._advice(name))
        holder = self._holder(name)
        if holder is None:
            raise InputError(f"{name}: not in --raw {self.raw or '(not given)'}. {self._advice(name)}")
        try:
            archive = self.get(holder.name)
        except InputError as error:
            if self.raw is None:
                raise
            raise InputError(f"{name}: not in --raw {self.raw}. {self._advice(name)}") from error
        unpack(archive, holder.holds, self.unpacked)
        atomic_write_bytes(self._record(holder), json.dumps(_state(archive)).encode())
        return unpacked

    def _holder(self, name: str) -> Optional[Download]:
        """The archive that holds a file; None: none does."""
        return next((download for download in self.dataset.downloads if name in download.holds), None)

    def _record(self, holder: Download) -> Path:
        """The file that says of which archive of that name the unpacked files are."""
        return self.folder / ".stamps" / f"unpacked.{holder.name}.json"

    def _is_of_its_archive(self, name: str) -> bool:
        """Whether an unpacked file is of the archive that is there now; an archive may be removed."""
        holder = self._holder(name)
        if holder is None:
            return True
        given = self._there.get(holder.name)
        if given is None and not self._is_of_its_archive(holder.name):
            return False
        archive, record = given[0] if given else self.unpacked / holder.name, self._record(holder)
        return not archive.exists() or (record.exists() and json.loads(record.read_bytes()) == _state(archive))

    def _advice(self, name: str) -> str:
        """Where a file comes from, for errors."""
        chain = [name]
        for _ in self.dataset.downloads:
            holders = [download.name for download in self.dataset.downloads if chain[-1] in download.holds]
            chain += holders[:1]
        urls = [url for download in self.dataset.downloads if download.name == chain[-1] for url in download.urls]
        place = f"; it is {urls[0]}" if urls else ""
        return f"Give --raw a folder that holds {' or '.join(chain)} ({self.dataset.page}){place}"


def fetch(download: Download, path: Path, advice: str) -> Path:
    """The file of a download, fetched unless it is there.

    An interrupted one goes on if the server still has the same content. Its SHA-256 is written beside it the first
    time, and compared from then on.

    Args:
        download: what to fetch.
        path: where to.
        advice: what else can be done, for errors.

    Raises:
        InputError: no network, another checksum, or something that is no archive though its name says so.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        problems = []
        for url in download.urls:
            logger.info(f"fetching {url}")
            try:
                transfer(url, partial_path(path))
                break
            except (OSError, ValueError) as error:
                problems.append(f"{url}: {getattr(error, 'reason', error)}")
        else:
            raise InputError(f"{download.name} cannot be downloaded ({'; '.join(problems)}). {advice}")
        _check(download, partial_path(path), advice)
        os.replace(partial_path(path), path)
        about(partial_path(path)).unlink(missing_ok=True)
    recorded, found = path.with_name(path.name + ".sha256"), sha256(path)
    if recorded.exists() and recorded.read_text(encoding="utf-8").split()[0] != found:
        raise InputError(f"{path}: is not what was downloaded first (see {recorded.name}); remove both to start anew")
    atomic_write_bytes(recorded, f"{found}  {path.name}\n".encode())
    return path


def _check(download: Download, path: Path, advice: str) -> None:
    """Removes a partial download that is not the file meant, and raises."""
    problem = None
    if download.md5 and _md5(path) != download.md5:
        problem = f"its MD5 is not {download.md5}"
    elif download.holds and not (tarfile.is_tarfile(path) or zipfile.is_zipfile(path)):
        problem = "it is no archive"
    if problem:
        path.unlink()
        about(path).unlink(missing_ok=True)
        raise InputError(f"{download.name}: what was downloaded is not the file meant: {problem}. {advice}")


def _state(path: Path) -> List[int]:
    """Size and time of change."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _md5(path: Path) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(BLOCK), b""):
            digest.update(block)
    return digest.hexdigest()


def unpack(archive: Path, names: List[str], folder: Path) -> None:
    """Writes members of a tar or zip file, wanted by their base names, into one flat folder.

    Raises:
        InputError: the archive is damaged or lacks one.
    """
    logger.info(f"unpacking {archive}")
    folder.mkdir(parents=True, exist_ok=True)
    missing = set(names)
    try:
        for name, stream in _members(archive):
            if name in missing:
                missing.discard(name)
                with open(partial_path(folder / name), "wb") as output:
                    shutil.copyfileobj(stream, output, BLOCK)
                os.replace(partial_path(folder / name), folder / name)
    except (*DAMAGED, tarfile.TarError, gzip.BadGzipFile, RuntimeError) as error:  # a password
        raise InputError(f"{archive}: cannot be unpacked: {error}") from error
    if missing:
        raise InputError(f"{archive}: does not hold {', '.join(sorted(missing))}")


def _members(archive: Path) -> Iterator[Tuple[str, IO[bytes]]]:
    """Yields base name and content of every file; nothing is written where an archive says."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            for entry in zipped.infolist():
                if not entry.is_dir():
                    with zipped.open(entry) as stream:
                        yield Path(entry.filename).name, stream
        return
    with tarfile.open(archive) as packed:
        for member in packed:
            content = packed.extractfile(member) if member.isfile() else None
            if content is not None:
                yield Path(member.name).name, content
