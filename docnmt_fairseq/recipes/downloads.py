"""Files of a data set: from a folder, or downloaded, and extracted from archives."""

import hashlib
import logging
import os
import shutil
import tarfile
import urllib.error
import urllib.request
import zipfile
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import IO, Dict, Iterator, List, Optional, Tuple

from docnmt_fairseq.corpus.step_cache import StepCache
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import identity, partial_path
from docnmt_fairseq.recipes.dataset import DatasetConfig, Download

TIMEOUT = 60  # seconds without data
BLOCK = 1 << 20

logger = logging.getLogger(__name__)


class Source:
    """Provides the files of a data set; existing files are neither downloaded nor extracted again.

    Args:
        dataset: configuration.
        steps: step cache of the output folder, which gets downloads and extracted files.
        raw: folder with the files, perhaps compressed with gzip, or their archives; None: download them.
    """

    def __init__(self, dataset: DatasetConfig, steps: StepCache, raw: Optional[Path] = None):
        self.dataset, self.steps, self.raw = dataset, steps, raw
        self.downloads, self.extracted = steps.folder / "downloads", steps.folder / "unpacked"
        self._given: Dict[str, Path] = {}
        if raw is not None:
            for path in sorted(raw.rglob("*"), key=lambda path: (len(path.parts), str(path))):
                self._given.setdefault(path.name, path)

    def get(self, name: str, wanted: Optional[str] = None) -> Path:
        """Returns the path of a file; the error of an unavailable one says where it can be obtained.

        Args:
            name: file.
            wanted: file that it holds, for the error; None: the file itself.
        """
        wanted = wanted or name
        for given in (name, f"{name}.gz"):
            if given in self._given:
                return self._given[given]
        archive = next((download for download in self.dataset.downloads if name in download.holds), None)
        if archive is not None:
            return self._extract(archive, name, wanted)
        download = next((one for one in self.dataset.downloads if one.name == name), None)
        if download is None or self.raw is not None:
            raise InputError(f"{wanted}: not in --raw {self.raw or '(not given)'}. {self._advice(wanted)}")
        return fetch(download, self.downloads / name, self._advice(wanted))

    def _extract(self, archive: Download, name: str, wanted: str) -> Path:
        """Extracts a file, unless it exists and its archive has not changed, or has been deleted."""
        places = [self._given.get(archive.name), self.downloads / archive.name, self.extracted / archive.name]
        if (self.extracted / name).exists() and not any(place and place.exists() for place in places):
            return self.extracted / name
        path = self.get(archive.name, wanted)
        outputs = [self.extracted / member for member in archive.holds]
        action = partial(unpack, path, archive.holds, self.extracted)
        self.steps.run(f"unpack/{archive.name}", {"archive": identity(path)}, outputs, action)
        return self.extracted / name

    def _advice(self, name: str) -> str:
        """Sources of a file, for error messages."""
        names = [name]
        while holders := [one.name for one in self.dataset.downloads if names[-1] in one.holds]:
            names += holders[:1]
        urls = [url for download in self.dataset.downloads if download.name == names[-1] for url in download.urls]
        url = f"; URL: {urls[0]}" if urls else ""
        return f"Give --raw a folder that holds {' or '.join(names)} ({self.dataset.page}){url}"


def fetch(download: Download, path: Path, advice: str) -> Path:
    """Downloads a file unless it exists; an interrupted download is resumed. Error messages end with ``advice``."""
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished, problems = partial_path(path), []
    for url in download.urls:
        logger.info(f"downloading {url}")
        try:
            transfer(url, unfinished)
            break
        except (OSError, ValueError, HTTPException) as error:
            problems.append(f"{url}: {getattr(error, 'reason', error)}")
    else:
        raise InputError(f"{download.name} cannot be downloaded ({'; '.join(problems)}). {advice}")
    problem = None
    if download.md5:
        with open(unfinished, "rb") as stream:
            if hashlib.file_digest(stream, "md5").hexdigest() != download.md5:
                problem = f"its MD5 differs from {download.md5}"
    if download.holds and not (tarfile.is_tarfile(unfinished) or zipfile.is_zipfile(unfinished)):
        problem = "it is not an archive"
    if problem:
        unfinished.unlink()
        raise InputError(f"{download.name}: not the expected file: {problem}. {advice}")
    os.replace(unfinished, path)
    return path


def transfer(url: str, path: Path) -> None:
    """Downloads a URL with a progress bar, resuming at the end of an existing file.

    Raises:
        OSError: no network, no such content, or a lost connection; the incomplete file stays.
    """
    from tqdm import tqdm

    done = path.stat().st_size if path.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == 416 and done:  # range not satisfiable: the existing file is complete
            return
        raise
    with response:
        done = done if response.status == 206 else 0  # partial content
        length = response.headers.get("Content-Length")
        total, name = None if length is None else done + int(length), path.name.removesuffix(".partial")
        with (
            open(path, "ab" if done else "wb") as stream,
            tqdm(total=total, initial=done, unit="B", unit_scale=True, desc=name) as bar,
        ):
            while block := response.read(BLOCK):
                stream.write(block)
                bar.update(len(block))
    if total is not None and path.stat().st_size != total:
        raise OSError("connection lost; run the command again to resume")


def unpack(archive: Path, names: List[str], folder: Path) -> None:
    """Extracts members of a tar or zip file, given by their base names, into a flat folder."""
    logger.info(f"unpacking {archive}")
    folder.mkdir(parents=True, exist_ok=True)
    missing = set(names)
    for name, stream in _members(archive):
        if name in missing:
            missing.discard(name)
            with open(partial_path(folder / name), "wb") as output:
                shutil.copyfileobj(stream, output, BLOCK)
            os.replace(partial_path(folder / name), folder / name)
    if missing:
        raise InputError(f"{archive}: lacks {', '.join(sorted(missing))}")


def _members(archive: Path) -> Iterator[Tuple[str, IO[bytes]]]:
    """Yields base name and content of every file; the folders inside the archive are ignored."""
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
