"""Text processing of one side of a model's data: tokenise, truecase, segment into subwords; and its inverse.

``docnmt prepare`` applies the stages to files one after another, :class:`TextCodec` to text in memory.
"""

import signal
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from tqdm import tqdm

from docnmt_fairseq.boundaries import is_boundary
from docnmt_fairseq.corpus.delimited import map_sentences
from docnmt_fairseq.corpus.files import read_lines
from docnmt_fairseq.corpus.prepared import is_prepared, manifest_options
from docnmt_fairseq.corpus.subwords import WITH_CODES, join_subwords, joiner_of, subword_encoder
from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.corpus.tokenizers import SentenceFunction, detokenizer, detruecaser, tokenizer, truecaser
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import PathLike

if TYPE_CHECKING:
    from fairseq.data import Dictionary
    from torch import Tensor


STAGES = TOKENIZED, TRUECASED, SUBWORD = ("tokenized", "truecased", "subword")  # folders of docnmt prepare
BATCH = 20_000  # lines in memory
CHUNK = 200  # sentences per task of a process

BatchFunction = Callable[[List[str]], List[str]]


@dataclass(frozen=True)
class SidePipeline:
    """Processing of the sentences of one side.

    Attributes:
        language: side whose tokeniser and models are used.
        tokenizer: kind of tokeniser.
        truecase: whether a truecaser follows; Chinese text is never truecased.
        subwords: kind of subwords.
        joint: whether the subword model is shared by source and target.
        language_token: symbol prepended to every sentence.
    """

    language: str
    tokenizer: str = "none"
    truecase: bool = False
    subwords: str = "none"
    joint: bool = True
    language_token: Optional[str] = None

    @classmethod
    def from_options(cls, options: Mapping[str, Any], side: int) -> "SidePipeline":
        """Pipeline of the source (0) or target (1) from the options in a manifest of ``docnmt prepare``."""
        name = ("source", "target")[side]
        return cls(
            options[f"{name}_lang"],
            options.get(f"{name}_tokenizer") or options["tokenizer"],
            options["truecase"],
            options["subwords"],
            options.get("joint", True),
            options.get(f"{name}_lang_token"),
        )

    @property
    def truecaser_file(self) -> Optional[str]:
        """File name of the truecaser in the folder of models; None if there is no truecaser."""
        return f"truecaser.{self.language}" if self.truecase and self.tokenizer != "jieba" else None

    @property
    def subword_file(self) -> Optional[str]:
        """File name of the subword model in the folder of models; None without subwords."""
        if self.subwords == "none":
            return None
        return "subword.model" if self.joint else f"subword.{self.language}.model"

    def model_file(self, stage: str) -> Optional[str]:
        """Returns the file name of the model of a stage; None if the stage has none."""
        return {TRUECASED: self.truecaser_file, SUBWORD: self.subword_file}.get(stage)

    @property
    def has_pieces(self) -> bool:
        """True if the subword model is a SentencePiece model."""
        return self.subwords not in ("none", *WITH_CODES)

    @property
    def joiner(self) -> Optional[str]:
        """fairseq's ``--post-process`` value that joins the subwords; None without subwords."""
        return joiner_of(self.subwords)

    def encoder(self, models: Path, workers: int = 1, stages: Sequence[str] = STAGES) -> BatchFunction:
        """Returns the function from normalised sentences to tokens separated by spaces."""
        functions = [self._stage(stage, models, workers) for stage in stages]

        def encode(sentences: List[str]) -> List[str]:
            for function in functions:
                sentences = function(sentences)
            return sentences

        return encode

    def _stage(self, stage: str, models: Path, workers: int) -> BatchFunction:
        if stage == TOKENIZED and self.tokenizer != "none":
            return parallel(partial(tokenizer, self.tokenizer, self.language), workers)
        if stage == TRUECASED and self.truecaser_file is not None:
            return parallel(partial(truecaser, models / self.truecaser_file), workers)
        if stage == SUBWORD and self.subword_file is not None:
            encode, token = subword_encoder(models / self.subword_file, workers, self.subwords), self.language_token
            if token is None:
                return encode
            # A sentence that became empty gets no token, so that it is noticed.
            return lambda sentences: [tokens and f"{token} {tokens}" for tokens in encode(sentences)]
        return list

    def decoder(self) -> SentenceFunction:
        """Returns the function from a sentence of tokens, subwords joined, to plain text."""
        detokenize = detokenizer(self.tokenizer, self.language)
        if self.truecaser_file is None:
            return detokenize
        detruecase = detruecaser()
        return lambda tokens: detokenize(detruecase(tokens))


def parallel(make: Callable[[], SentenceFunction], workers: int = 1) -> BatchFunction:
    """Returns the function that applies another one to every sentence, in several processes.

    Args:
        make: picklable; returns the function of one sentence, and is called once in each process.
        workers: number of processes; 1: no extra process.
    """
    function = make()  # raises errors of the set-up here
    if workers <= 1:
        return lambda sentences: list(map(function, sentences))
    pool = ProcessPoolExecutor(workers, initializer=_initialise, initargs=(make,))  # ends with the returned function

    def call(sentences: List[str]) -> List[str]:
        chunks = [sentences[start : start + CHUNK] for start in range(0, len(sentences), CHUNK)]
        with worker_errors(workers):
            return list(chain.from_iterable(pool.map(_apply, chunks)))

    return call


@contextmanager
def worker_errors(workers: int) -> Iterator[None]:
    """Context in which a killed worker process becomes an :class:`InputError`."""
    try:
        yield
    except BrokenProcessPool as error:
        remedy = "finished steps are kept; run again, with fewer --workers if it fails again"
        raise InputError(f"--workers {workers}: a process was killed, perhaps out of memory; {remedy}") from error


_process_function: SentenceFunction = str  # function of this worker process


def _initialise(make: Callable[[], SentenceFunction]) -> None:
    global _process_function
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Ctrl-C the main process ends its workers
    _process_function = make()


def _apply(sentences: List[str]) -> List[str]:
    return list(map(_process_function, sentences))


def batches(lines: Iterator[str]) -> Iterator[List[str]]:
    """Yields lists of up to :data:`BATCH` lines."""
    while batch := list(islice(lines, BATCH)):
        yield batch


def process_file(path: PathLike, function: BatchFunction, title: str = "") -> Iterator[List[str]]:
    """Yields the lines of a delimited file in batches, its sentences processed."""
    first = 1
    with open(path, "rb") as stream:
        total = sum(1 for _ in stream)
    with tqdm(total=total, desc=title, unit=" lines", disable=None) as progress:
        for batch in batches(read_lines(path)):
            processed = map_sentences(batch, function)
            for number, (before, after) in enumerate(zip(batch, processed), start=first):
                if is_boundary(after.strip()) and not is_boundary(before):
                    raise InputError.at(path, number, f"{title}: nothing is left of this sentence; remove it")
            yield processed
            first += len(batch)
            progress.update(len(batch))


# --- Text in memory ---


class TextCodec:
    """Encodes sentences to tokens as ``docnmt prepare`` did and decodes tokens to text.

    Args:
        data: output of ``docnmt prepare``; with a data-bin alone, text is tokens separated by spaces.
        tokenized: text is tokens separated by spaces in any case.
    """

    def __init__(self, data: Path, tokenized: bool = False):
        self.data = data
        prepared = not tokenized and is_prepared(data)
        self.options: Dict[str, Any] = manifest_options(data, "--data") if prepared else {}
        self._encoders: Dict[int, BatchFunction] = {}

    @classmethod
    def of_output(cls, data: Path) -> "TextCodec":
        """Returns the codec of an output of ``docnmt prepare``; raises :class:`InputError` if the folder is not one."""
        manifest_options(data, "--data")
        return cls(data)

    @property
    def languages(self) -> Tuple[str, str]:
        """Source and target language."""
        return self.options["source_lang"], self.options["target_lang"]

    @cached_property
    def pipelines(self) -> Tuple[SidePipeline, SidePipeline]:
        """Processing of source and target."""
        return SidePipeline.from_options(self.options, 0), SidePipeline.from_options(self.options, 1)

    def load(self) -> None:
        """Loads everything needed to translate, so that missing models are reported before the work starts."""
        self._encoder(0)
        self._decode  # noqa: B018

    def begin(self, side: int) -> List[str]:
        """Returns the tokens that sentences of the source (0) or target (1) start with: a language token or none."""
        token = self.pipelines[side].language_token if self.options else None
        return [token] if token else []

    def encode(self, side: int, sentences: List[str]) -> List[str]:
        """Encodes sentences of the source (0) or target (1) to tokens separated by spaces."""
        return self._encoder(side)(sentences) if sentences else []

    def encode_lines(self, side: int, lines: Sequence[str]) -> List[str]:
        """Encodes delimited text; boundaries are unchanged."""
        return map_sentences(lines, partial(self.encode, side))

    def decode(self, tokens: str) -> str:
        """Decodes the tokens of a target sentence to plain text."""
        return self._decode(tokens)

    def _encoder(self, side: int) -> BatchFunction:
        if side not in self._encoders and not self.options:
            self._encoders[side] = lambda sentences: [" ".join(sentence.split()) for sentence in sentences]
        if side not in self._encoders:
            if side == 1:
                self._refuse_edit_operations()
            encode = self.pipelines[side].encoder(self.data / "models")
            self._encoders[side] = lambda sentences: encode(list(map(normalise, sentences)))
        return self._encoders[side]

    @cached_property
    def _decode(self) -> SentenceFunction:
        if not self.options:
            return str
        self._refuse_edit_operations()
        joiner, to_text = self.pipelines[1].joiner, self.pipelines[1].decoder()
        begin = " ".join([*self.begin(1), ""])
        return lambda tokens: to_text(join_subwords(tokens.removeprefix(begin), joiner).strip())

    def _refuse_edit_operations(self) -> None:
        if self.options.get("edits_of"):
            raise InputError(
                f"the targets of {self.data} are edit operations (--edits-of {self.options['edits_of']}), not text; "
                "translate with fairseq-generate"
            )


def token_ids(lines: Sequence[str], dictionary: "Dictionary") -> "List[Tensor]":
    """Returns delimited lines of tokens as tensors of token ids, each with an end of sentence."""
    return [dictionary.encode_line(line, add_if_not_exist=False).long() for line in lines]
