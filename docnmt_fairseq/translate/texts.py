"""Files and standard input to translate: the documents of each, and what of them is still to do."""

import logging
import sys
from array import array
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import BinaryIO, ContextManager, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from docnmt_fairseq.corpus.files import open_binary
from docnmt_fairseq.corpus.steps import sha256
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.translate.counts import read_counts
from docnmt_fairseq.translate.formats import Document, Format, format_of
from docnmt_fairseq.translate.output import FileOutput, Output, StandardOutput, read_journal
from docnmt_fairseq.translate.parts import MisfitError, Part, part_path, put_together, table_of
from docnmt_fairseq.translate.request import (
    STANDARD,
    Request,
    check_pattern,
    check_split,
    check_there,
    pairs_of,
    read_once,
)
from docnmt_fairseq.translate.shards import Shard, owners_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PlacedDocument(Document):
    """A document that knows where it stands.

    Attributes:
        line: how many lines the file's documents before it have.
    """

    line: int = 0


@dataclass(frozen=True)
class FileToTranslate:
    """A file to translate, or some documents of it.

    Attributes:
        source: the file.
        target: where its translation goes, None: to standard output.
        format: of both.
        sizes: sentences of each document; None: not known before it is read.
        first, end: the documents.
        done: how many of them are translated already.
        whole: the file of which ``target`` is a part.
        parts: all of its parts.
        anew: whether other parts may be left from before; they are made anew, too.
        key: tells the file from others of the same request, in whatever folder they lie.
    """

    source: Path
    target: Optional[Path]
    format: Format
    sizes: Optional[Sequence[int]] = None
    first: int = 0
    end: Optional[int] = None
    done: int = 0
    whole: Optional[Path] = None
    parts: Sequence[Path] = ()
    anew: bool = False
    key: str = ""

    @property
    def name(self) -> str:
        """What messages call the source."""
        return "standard input" if self.source == STANDARD else str(self.source)

    @property
    def sentences(self) -> int:
        """Those that are to be translated; 0 where that is not known."""
        return sum(self.sizes[self.first + self.done : self.end]) if self.sizes is not None else 0

    def documents(self) -> Iterator[PlacedDocument]:
        """The documents, those that are translated already among them."""
        with _opened(self.source) as stream:
            yield from islice(_placed(self.format.documents(stream, self.name)), self.first, self.end)

    def output(self, settings: Mapping[str, str], resume: bool, scores: bool = False) -> Output:
        """Where the translation goes.

        Args:
            settings: that it depends on.
            resume: go on where the translation was interrupted.
            scores: also to a table of scores beside it.

        Raises:
            InputError: it was begun with other settings, or another part was made from another text or with others.
        """
        if self.target is None:
            return StandardOutput()
        part = None if self.whole is None else self._part(self.target, settings)
        return FileOutput(self.target, settings, resume, scores, part)

    def _part(self, target: Path, settings: Mapping[str, str]) -> Part:
        """What the target is made from, after it was compared with what other parts were."""
        assert self.sizes is not None and self.end is not None  # or there were no parts
        try:
            digest = sha256(self.source)
        except OSError as error:
            raise InputError(f"{self.source}: cannot be read: {error.strerror}") from error
        part = Part(target, digest, len(self.sizes), self.first, self.end, dict(settings))
        for other in () if self.anew else self.parts:
            if other.exists():
                Part.read(other).check_goes_with(part)
        return part

    def drop_table(self) -> None:
        """Removes the table of scores beside a translation that is there: the one in its place has none."""
        for path in (self.target, self.whole):
            if path is not None and path.exists():
                table_of(path).unlink(missing_ok=True)

    def finish(self) -> None:
        """Puts the file together, and the table of its scores, if this was its last part.

        Raises:
            InputError: the parts do not fit together.
        """
        if self.whole is None:
            return
        try:
            done = put_together(self.whole, self.parts)
        except MisfitError as error:
            if not self.anew:
                raise
            logger.warning(f"{error}")
            return
        if done:
            logger.info(f"{self.whole}: put together from its {len(self.parts)} parts")


def _placed(documents: Iterable[Document]) -> Iterator[PlacedDocument]:
    line = 0
    for document in documents:
        yield PlacedDocument(document.lines, document.finish, document.first_line, line)
        line += len(document.lines)


def _opened(source: Path) -> ContextManager[BinaryIO]:
    return nullcontext(sys.stdin.buffer) if source == STANDARD else open_binary(source)


def texts_of(request: Request) -> List[FileToTranslate]:
    """The texts to translate, after all files were read once: what cannot be read is said before any translation.

    Raises:
        InputError: nothing to translate; a file that cannot be read; two files that would become the same one; a
            translation that is there already, or that would replace an input.
    """
    inputs = request.inputs
    if request.output is None and request.shard.of == 1:
        if len(inputs) > 1 or inputs[0].is_dir():
            raise InputError("--output: give a folder for the translations of several texts")
        check_pattern(request)
        check_split(inputs, request)
        return [text_of(inputs[0], None, request)]
    pairs = pairs_of(request)
    if request.shard.of > 1:
        texts = list(_of_shard(counted(pairs, request), request.shard))
        there = [text for text in texts if any(path.exists() for path in (text.target, text.whole) if path is not None)]
        check_there([text.target for text in there if text.target], request, len(texts))
        if not request.force:
            for text in there:
                text.finish()
            texts = [text for text in texts if text not in there]
    else:
        found = {target for _, target in pairs if target.exists()}
        check_there(sorted(found), request, len(pairs))
        texts = [text_of(source, target, request) for source, target in pairs if request.force or target not in found]
    return [_going_on(text, request) for text in texts]


def counted(pairs: Sequence[Tuple[Path, Path]], request: Request) -> List[FileToTranslate]:
    """The texts of all files; those whose sentences were counted before are not read.

    Raises:
        InputError: a file cannot be read, or was changed since then.
    """
    if request.counts is None:
        return [text_of(source, target, request) for source, target in pairs]
    sizes = read_counts(request.counts, [source for source, _ in pairs])
    return [replace(_unread(*pair, request), sizes=of_file) for pair, of_file in zip(pairs, sizes)]


def text_of(source: Path, target: Optional[Path], request: Request) -> FileToTranslate:
    """A file as what is to be translated; its sentences are counted where it can be read for that, too.

    Raises:
        InputError: it cannot be read.
    """
    text = _unread(source, target, request)
    if read_once(source):
        return text
    return replace(text, sizes=array("q", (document.sentences for document in text.documents())))


def _unread(source: Path, target: Optional[Path], request: Request) -> FileToTranslate:
    format_ = format_of(source.name, request.format, request.reading)
    return FileToTranslate(source, target, format_, anew=request.force, key=_key(source, request.inputs))


def _key(source: Path, inputs: Sequence[Path]) -> str:
    """The name of a file in the input folder that it is in; of another one its own."""
    folder = next((path for path in inputs if source.is_relative_to(path) and source != path), source.parent)
    return source.relative_to(folder).as_posix()


def _of_shard(texts: Sequence[FileToTranslate], shard: Shard) -> Iterator[FileToTranslate]:
    """What a shard does of all there is."""
    for text, owners in zip(texts, owners_of([text.sizes or () for text in texts], shard.of)):
        assert text.target is not None
        parts = [part_path(text.target, number, shard.of) for number, _, _ in owners]
        for part, (number, first, end) in zip(parts, owners):
            if number == shard.number and len(parts) == 1:
                yield text
            elif number == shard.number:
                yield replace(text, target=part, first=first, end=end, whole=text.target, parts=parts)


def _going_on(text: FileToTranslate, request: Request) -> FileToTranslate:
    """A text with what is done of it.

    Raises:
        InputError: it was begun and is not to be gone on with, nor to begin anew.
    """
    journal = None if text.target is None else read_journal(text.target)
    if journal is None or request.force:
        return text
    if not request.resume:
        raise InputError(
            f"--output {text.target}: was interrupted after {journal.documents:,} documents; --resume goes on, "
            "--force begins anew"
        )
    logger.info(f"{text.name}: goes on after {journal.documents:,} documents")
    return replace(text, done=journal.documents)
