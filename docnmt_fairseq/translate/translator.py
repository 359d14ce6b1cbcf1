"""Translator of documents: text in, text out, every sentence with the context that the model uses.

The search is :mod:`docnmt_fairseq.search`; its translations and scores equal those of ``fairseq-generate``.
"""

import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence

import torch
from fairseq import utils
from fairseq.dataclass.configs import FairseqConfig
from torch import Tensor

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.corpus.pipeline import TextCodec
from docnmt_fairseq.corpus.prepared import MANIFEST
from docnmt_fairseq.data.concatenation import ConcatenationDataset, Hypothesis
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.files import PathLike
from docnmt_fairseq.layers.packed_linear import round_weights
from docnmt_fairseq.models.base import all_take_layouts
from docnmt_fairseq.search.engine import SearchEngine
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.encoded_text import Chunk, EncodedText, LineEncoder, Result, sample_of
from docnmt_fairseq.translate.lines import EMPTY_LINES, Origin, TranslatedLine, Translation, translated_line
from docnmt_fairseq.translate.loading import ON_GPU, load_translating, precision_of
from docnmt_fairseq.translate.view import DocumentView

logger = logging.getLogger(__name__)


@dataclass
class Throughput:
    """Sentences translated, tokens of their best translations (with end of sentence), seconds of the search."""

    sentences: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        seconds = max(self.seconds, 1e-9)
        return (
            f"{self.sentences:,} sentences ({self.tokens:,} tokens) in {self.seconds:,.1f} s: "
            f"{self.sentences / seconds:,.1f} sentences/s, {self.tokens / seconds:,.0f} tokens/s"
        )


class DocumentTranslator:
    """Translator of plain text.

    Args:
        ensemble: models, and a task that knows documents.
        codec: text to subwords and back.
        search: search options.
        max_tokens: maximum number of source tokens in a batch, without padding.
        cpu: does not use a GPU.
        precision: see :func:`~docnmt_fairseq.translate.loading.precision_of`. On a CPU the weights are rounded to it.

    Raises:
        InputError: the device does not support the precision.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        codec: TextCodec,
        search: SearchOptions = SearchOptions(),
        max_tokens: int = 12000,
        cpu: bool = False,
        precision: Optional[str] = None,
    ):
        self.ensemble, self.codec, self.max_tokens = ensemble, codec, max_tokens
        self.task, self.models = ensemble.task, ensemble.models
        self.cuda = torch.cuda.is_available() and not cpu
        self.precision = precision = precision_of(precision, self.cuda)
        self.throughput = Throughput()
        all_take_layouts(self.models)
        cfg = FairseqConfig()
        cfg.generation.beam = search.beam
        for model in self.models:
            if self.cuda:
                model.to("cuda", ON_GPU[precision])
            else:
                round_weights(model, precision)
            model.prepare_for_inference_(cfg)
        self.max_positions = utils.resolve_max_positions(
            self.task.max_positions(), *[model.max_positions() for model in self.models]
        )
        self.encoder = LineEncoder(codec, self.task, self.max_positions)
        self.search = search
        begin = [token for token in self.task.language_tokens[1:] if token is not None]
        dictionary = self.task.target_dictionary
        self.engine = SearchEngine(self.models, dictionary, search, precision=precision, begin=begin)

    @property
    def files(self) -> List[Path]:
        """Files that the translations depend on."""
        return [*map(Path, self.ensemble.paths), self.codec.data / MANIFEST, *self.task.files_of_context]

    @classmethod
    def from_checkpoint(
        cls, *paths: PathLike, data: Optional[PathLike] = None, view: DocumentView = DocumentView(), **options: Any
    ) -> "DocumentTranslator":
        """Returns the translator of a checkpoint, or of an ensemble of several.

        Args:
            paths: checkpoint files of models of ``document_translation``, ``concatenated_translation`` or fairseq's
                ``translation``.
            data: output of ``docnmt prepare``; None: that of the training.
            view: view of documents, where it differs from the training.
            options: arguments of the class.

        Raises:
            InputError: a file is not a checkpoint, or they do not fit together.
        """
        ensemble, codec = load_translating(*paths, data=data, view=view)
        return cls(ensemble, codec, **options)

    def translate(
        self,
        documents: Sequence[Sequence[str]],
        names: Sequence[str] = (),
        empty_lines: str = EMPTY_LINES[0],
        progress: Callable[[int], object] = lambda sentences: None,
    ) -> List[List[str]]:
        """Returns a translated line for each line; empty lines and ``<p>`` stay in place.

        Args:
            documents: a sentence per line; a line ``<p>`` ends a paragraph.
            names: names of the documents in messages.
            empty_lines: what an empty line ends; with "paragraph", each list of lines is one document.
            progress: called with the number of sentences finished since the last call.

        Raises:
            InputError: a sentence is too long for the model; names document and line.
        """
        found = self.translate_lines(documents, names, empty_lines, progress)
        return [[line.text for line in lines] for lines in found]

    def translate_lines(
        self,
        documents: Sequence[Sequence[str]],
        names: Sequence[str] = (),
        empty_lines: str = EMPTY_LINES[0],
        progress: Callable[[int], object] = lambda sentences: None,
        target_prefix: Sequence[Sequence[str]] = (),
        target_context: Sequence[Sequence[str]] = (),
    ) -> List[List[TranslatedLine]]:
        """Returns every line with its n-best list and scores.

        Args:
            documents, empty_lines, progress: see :meth:`translate`.
            names: names of the documents; for an :class:`~docnmt_fairseq.translate.lines.Origin`, sampling depends on
                its file and line instead of the line's number in this call.
            target_prefix: forced beginning of each line's translation; empty: none.
            target_context: what later sentences of models with target-side context see instead of each line's
                translation; empty: the translation.

        Raises:
            InputError: a sentence is too long for the model; target lines with windows of several target sentences.
            ValueError: target lines of another shape.
        """
        text = self.prepare(documents, names, empty_lines, False, self.max_tokens, target_prefix, target_context)
        found: Dict[int, List[Translation]] = {}
        start = time.perf_counter()
        batches = ([Chunk(text, number) for number in batch] for batch in text.batches)
        keys = {
            start + number: (origin.file_hash, origin.line + number)
            for start, lines, origin in zip(text.starts, documents, names)
            if isinstance(origin, Origin)
            for number in range(len(lines))
        }
        for result in self.stream(batches, sampling_keys=keys):
            found[result.line] = list(map(self.translation, result.hypotheses))
            progress(1)
        self.throughput.seconds += time.perf_counter() - start
        empty = sum(not translations[0].text for translations in found.values())
        if empty:
            logger.warning(f"{empty:,} sentences have an empty translation: an empty line that ends no document")
        unk = self.task.target_dictionary.unk_word
        unknown = sum(unk in translations[0].text for translations in found.values())
        if unknown:
            logger.warning(
                f"{unknown:,} translations contain {unk}: --unkpen 1000 suppresses it; models of data prepared with "
                "--byte-fallback have no unknown characters"
            )
        return [
            [translated_line(line, found.get(start + number, [])) for number, line in enumerate(lines)]
            for start, lines in zip(text.starts, documents)
        ]

    def prepare(
        self,
        documents: Sequence[Sequence[str]],
        names: Sequence[str] = (),
        empty_lines: str = EMPTY_LINES[0],
        alone: bool = False,
        max_tokens: Optional[int] = None,
        target_prefix: Sequence[Sequence[str]] = (),
        target_context: Sequence[Sequence[str]] = (),
    ) -> EncodedText:
        """Encodes documents for :meth:`stream`.

        Args:
            documents, names, empty_lines: see :meth:`translate`.
            alone: translates every sentence without context, whatever the view says.
            max_tokens: maximum number of source tokens in a batch; None: a single batch.
            target_prefix, target_context: see :meth:`translate_lines`.

        Raises:
            InputError, ValueError: see :meth:`translate_lines`; documents are not lists of lines.
        """
        if isinstance(documents, str) or any(isinstance(lines, str) for lines in documents):
            raise InputError("documents: expected a list of documents, each a list of lines, not a string")
        names = names or [f"document {number}" for number in range(1, len(documents) + 1)]
        tokens: List[Tensor] = []
        starts = []
        for name, lines in zip(names, documents):
            starts.append(len(tokens))
            tokens += self.encoder.source(lines, name, empty_lines)
        dataset = self.task.documents_in_memory(tokens, alone)
        # A long document is a batch of its own; fairseq requires that a long window fits.
        longest = dataset.sizes.max(initial=1) if isinstance(dataset, ConcatenationDataset) else 1
        batches = self.task.get_batch_iterator(
            dataset,
            max_tokens=None if max_tokens is None else max(max_tokens, int(longest)),
            max_positions=self.max_positions,
            disable_iterator_cache=True,  # the task would keep every text
        ).frozen_batches
        forced = self.encoder.target("--target-prefix", documents, starts, target_prefix)
        prefixes = {number: tokens[:-1].numpy() for number, tokens in forced.items()}
        context = self.encoder.target("--target-context", documents, starts, target_context)
        numbers = [list(map(int, batch)) for batch in batches]
        return EncodedText(starts, dataset, dataset.decoded_sentences(), numbers, alone, prefixes, context)

    def stream(
        self,
        batches: Iterator[Optional[Sequence[Chunk]]],
        live: bool = False,
        sampling_keys: Optional[Mapping[int, Sequence[int]]] = None,
    ) -> Iterator[Result]:
        """Yields the sentences of chunks as they are finished; sentences of different texts are decoded together.

        A batch is requested when there is room for its sentences, so texts can be added while others are translated.

        Args:
            batches: chunks that are encoded together; None: nothing at present, which ends the search when it is idle.
            live: batches arrive continuously: all available ones are encoded, and their sentences alternate.
            sampling_keys: what sampling depends on, by line; see
                :class:`~docnmt_fairseq.search.candidates.SamplingRng`.
        """
        penalty = None if self.search.unnormalized else self.search.lenpen
        for sentence, hypotheses in self.engine.run(map(self._sample, batches), live, sampling_keys):
            sample = sentence.batch.sample
            text: EncodedText = sample["texts"][sentence.row]
            if not text.alone:
                source = sample["net_input"]["src_tokens"][sentence.row, None]
                (hypotheses,) = self.task.of_sentences(source, [hypotheses], penalty)
            self.throughput.sentences += 1
            self.throughput.tokens += len(hypotheses[0]["tokens"])
            yield Result(text, sentence.number, hypotheses)

    def translation(self, hypothesis: Hypothesis) -> Translation:
        """Returns a hypothesis as text."""
        text = self.codec.decode(self.task.target_dictionary.string(hypothesis["tokens"].int()))
        return Translation(text, float(hypothesis["score"]))

    def _sample(self, chunks: Optional[Sequence[Chunk]]) -> Optional[Dict[str, Any]]:
        if not chunks:
            return None
        sample = sample_of(chunks)
        return utils.move_to_cuda(sample) if self.cuda else sample
