"""Documents in, translated documents out: a model with everything before and after it.

The search is one of our own, its translations and scores are those of ``fairseq-generate``.
"""

import logging
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

import torch
from fairseq import utils
from fairseq.dataclass.configs import FairseqConfig
from torch import Tensor

from docnmt_fairseq.checkpoints import Ensemble
from docnmt_fairseq.corpus.files import PathLike
from docnmt_fairseq.corpus.text import normalise
from docnmt_fairseq.corpus.text_codec import TextCodec, token_ids
from docnmt_fairseq.data.concatenation import ConcatenationDataset
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.layers.packed_linear import FLOAT32, PRECISIONS
from docnmt_fairseq.marks import DOCUMENT, PARAGRAPH
from docnmt_fairseq.models.base import check_together
from docnmt_fairseq.search.engine import SearchEngine
from docnmt_fairseq.search.engines import search_engine
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.files import EMPTY_LINES
from docnmt_fairseq.translate.lines import TranslatedLine, Translation
from docnmt_fairseq.translate.task import DocumentView, load_translating

# What models can be computed in: on GPUs the type of all states, on CPUs that of matrix products.
ON_GPU = {"float32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
ON_CPU = PRECISIONS

logger = logging.getLogger(__name__)


@dataclass
class Throughput:
    """What was translated: ``tokens`` are those of the best translations, ends included; ``seconds`` of the search."""

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
    """Translates plain text.

    Args:
        ensemble: the models, and a task that knows documents.
        codec: from text to subwords and back.
        search: options of the search.
        max_tokens: real source tokens that are encoded together.
        cpu: do not use a GPU.
        precision: of ``PRECISIONS``.

    Raises:
        InputError: a precision that the device does not have.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        codec: TextCodec,
        search: SearchOptions = SearchOptions(),
        max_tokens: int = 12000,
        cpu: bool = False,
        precision: str = FLOAT32,
    ):
        self.task, self.models, self.codec, self.max_tokens = ensemble.task, ensemble.models, codec, max_tokens
        self.cuda = torch.cuda.is_available() and not cpu
        on_device = ON_GPU if self.cuda else ON_CPU
        if precision not in on_device:
            raise InputError(f"--precision {precision}: {'a GPU' if self.cuda else 'a CPU'} has {', '.join(on_device)}")
        self.throughput = Throughput()
        check_together(self.models)
        cfg = FairseqConfig()
        cfg.generation.beam = search.beam
        for model in self.models:
            if self.cuda:
                model.to("cuda", ON_GPU[precision])
            model.prepare_for_inference_(cfg)
        self.max_positions = utils.resolve_max_positions(
            self.task.max_positions(), *[model.max_positions() for model in self.models]
        )
        self.search = search
        self.engine: SearchEngine = search_engine(self.models, self.task.target_dictionary, search, precision=precision)

    @classmethod
    def from_checkpoint(
        cls, *paths: PathLike, data: Optional[PathLike] = None, view: DocumentView = DocumentView(), **options: Any
    ) -> "DocumentTranslator":
        """The translator of a checkpoint, or of an ensemble of several.

        Args:
            paths: of models trained with ``document_translation``, ``concatenated_translation`` or fairseq's own
                ``translation``.
            data: the folder that ``docnmt prepare`` wrote; None: where it was in training.
            view: of documents, where it is to differ from training.
            options: of the class.

        Raises:
            InputError: they do not belong together.
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
        """Translates, a line for each line; empty lines and ``<p>`` stay where they are.

        Args:
            documents: a sentence a line; a line ``<p>`` ends a paragraph.
            names: of the documents, for messages.
            empty_lines: what they end; of "paragraph" every list of lines is one document.
            progress: is called with the number of sentences done since the last call.

        Raises:
            InputError: a sentence that is too long for the model; names document and line.
        """
        found = self.translate_lines(documents, names, empty_lines, progress)
        return [[line.text for line in lines] for lines in found]

    def translate_lines(
        self,
        documents: Sequence[Sequence[str]],
        names: Sequence[str] = (),
        empty_lines: str = EMPTY_LINES[0],
        progress: Callable[[int], object] = lambda sentences: None,
        prefixes: Sequence[Sequence[str]] = (),
    ) -> List[List[TranslatedLine]]:
        """Every line with its translations, as many as the search was told, and their scores.

        Args:
            documents, names, empty_lines, progress: see :meth:`translate`.
            prefixes: what each line's translation begins with, a line for each line of the documents; an empty one
                leaves it open.

        Raises:
            InputError: a sentence that is too long for the model; prefixes of other lines, or for windows of several
                target sentences.
        """
        names = names or [f"document {number}" for number in range(1, len(documents) + 1)]
        tokens: List[Tensor] = []
        starts = []
        for name, lines in zip(names, documents):
            starts.append(len(tokens))
            tokens += self._encode(lines, name, empty_lines)
        found = self._search(tokens, self._prefix_tokens(documents, starts, prefixes), progress)
        empty = sum(not translations[0].text for translations in found.values())
        if empty:
            logger.warning(f"{empty:,} sentences have an empty translation: an empty line that ends no document")
        return [
            [_line(line, found.get(start + number, [])) for number, line in enumerate(lines)]
            for start, lines in zip(starts, documents)
        ]

    def _prefix_tokens(
        self, documents: Sequence[Sequence[str]], starts: Sequence[int], prefixes: Sequence[Sequence[str]]
    ) -> Dict[int, Tensor]:
        """The tokens [·] that translations begin with, by line number."""
        if not prefixes:
            return {}
        if [len(lines) for lines in prefixes] != [len(lines) for lines in documents]:
            raise InputError("--prefixes: as many lines as the text has")
        if getattr(self.task, "window", (1, 1))[1] > 1:
            raise InputError("--prefixes: not with --concatenate-target over 1")
        found = {}
        for start, lines in zip(starts, prefixes):
            encoded = self.codec.encode_lines(1, list(map(normalise, lines)))
            for number, tokens in enumerate(token_ids(encoded, self.task.target_dictionary), start=start):
                found[number] = tokens[:-1]
        return found

    def _encode(self, lines: Sequence[str], name: str, empty_lines: str) -> List[Tensor]:
        """The tokens of every line, and an empty line that ends the document.

        A line of which nothing is left by normalisation, which prepare refuses, is an empty line here.
        """
        encoded = [text.strip() for text in self.codec.encode_lines(0, list(map(normalise, lines)))]
        for number, (line, text) in enumerate(zip(lines, encoded), start=1):
            if not text and line.strip():
                logger.warning(f"{name}:{number}: nothing of this line can be seen: taken as an empty line")
        if empty_lines == "paragraph":
            encoded = [text or PARAGRAPH for text in encoded]
        tokens = token_ids([*encoded, DOCUMENT], self.task.source_dictionary)
        longest = self.max_positions[0]
        for number, sentence in enumerate(tokens, start=1):
            if len(sentence) > longest:
                message = f"a sentence of {len(sentence):,} tokens, but the model takes {longest:,}; divide it"
                raise InputError.at(name, number, message)
        return tokens

    def _search(
        self, lines: List[Tensor], prefixes: Mapping[int, Tensor], progress: Callable[[int], object]
    ) -> Dict[int, List[Translation]]:
        """The translations of every line that is a sentence, by number."""
        dataset = self.task.documents_in_memory(lines)
        # A long document is a batch by itself; of a long window fairseq demands that it fits.
        longest = dataset.sizes.max(initial=1) if isinstance(dataset, ConcatenationDataset) else 1
        batches = self.task.get_batch_iterator(
            dataset,
            max_tokens=max(self.max_tokens, int(longest)),
            max_positions=self.max_positions,
        ).frozen_batches
        samples = (dataset.collater([dataset[int(number)] for number in batch]) for batch in batches)
        samples = (utils.move_to_cuda(sample) for sample in samples) if self.cuda else samples
        penalty = None if self.search.unnormalized else self.search.lenpen
        found: Dict[int, List[Translation]] = {}
        start = time.perf_counter()
        for sentence, hypotheses in self.engine.run(samples, prefixes):
            source = sentence.batch.sample["net_input"]["src_tokens"][sentence.row, None]
            (own,) = self.task.of_sentences(source, [hypotheses], penalty)
            self.throughput.sentences += 1
            self.throughput.tokens += len(own[0]["tokens"])
            found[sentence.number] = [Translation(self._decode(one["tokens"]), float(one["score"])) for one in own]
            progress(1)
        self.throughput.seconds += time.perf_counter() - start
        return found

    def _decode(self, tokens: Tensor) -> str:
        return self.codec.decode(self.task.target_dictionary.string(tokens.int()))


def _line(line: str, translations: List[Translation]) -> TranslatedLine:
    """What becomes of a line; one without translations is no sentence, and stays."""
    if translations:
        return TranslatedLine(translations[0].text, translations)
    return TranslatedLine(PARAGRAPH if normalise(line) == PARAGRAPH else DOCUMENT, [])
