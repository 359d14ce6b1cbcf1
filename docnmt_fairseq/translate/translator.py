"""Documents in, translated documents out: a model with everything before and after it.

The search is one of our own, its translations and scores are those of ``fairseq-generate``.
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
from docnmt_fairseq.corpus.files import PathLike
from docnmt_fairseq.corpus.reusing import MANIFEST
from docnmt_fairseq.corpus.text_codec import TextCodec
from docnmt_fairseq.data.concatenation import ConcatenationDataset, Hypothesis
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.layers.rounding import round_weights
from docnmt_fairseq.models.batches import all_take_layouts
from docnmt_fairseq.search.build_engine import search_engine
from docnmt_fairseq.search.engine import SearchEngine
from docnmt_fairseq.search.options import SearchOptions
from docnmt_fairseq.translate.encoding import LineEncoder
from docnmt_fairseq.translate.files import EMPTY_LINES
from docnmt_fairseq.translate.lines import TranslatedLine, Translation, draw_keys, translated_line
from docnmt_fairseq.translate.precision import ON_GPU, precision_of
from docnmt_fairseq.translate.prepared import Piece, PreparedText, Result, sample_of
from docnmt_fairseq.translate.task import load_translating
from docnmt_fairseq.translate.view import DocumentView

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
        precision: see :func:`precision_of`; None: that of an exported checkpoint, else float32. On a CPU the
            models' weights are rounded to it.

    Raises:
        InputError: a precision that the device does not have, or another than an exported checkpoint's.
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
        self.precision = precision = precision_of(ensemble, precision, self.cuda)
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
        self.engine: SearchEngine = search_engine(self.models, dictionary, search, precision=precision, begin=begin)

    @property
    def files(self) -> Dict[str, List[Path]]:
        """Whose content tells what translations are made with, by the option of ``docnmt translate`` that leads there.

        A manifest has the checksums of the models and dictionaries that the text goes through.
        """
        data = [self.codec.data / MANIFEST, *self.task.files_of_context]
        return {"path": list(self.ensemble.paths), "data": data}

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
        corrected: Sequence[Sequence[str]] = (),
    ) -> List[List[TranslatedLine]]:
        """Every line with its translations, as many as the search was told, and their scores.

        Args:
            documents, empty_lines, progress: see :meth:`translate`.
            names: of the documents; if they are :class:`~docnmt_fairseq.translate.lines.Origin`, draws depend on
                these, else on the line's number in this call.
            prefixes: what each line's translation begins with, a line for each line of the documents; an empty one
                leaves it open.
            corrected: what later sentences of models with target-side context see in place of each line's translation,
                a line for each line of the documents; in place of an empty one they see the model's own.

        Raises:
            InputError: a sentence that is too long for the model; prefixes or corrected translations of other lines, or
                for windows of several target sentences, or corrected ones for models that do not look back at them.
        """
        text = self.prepare(documents, names, empty_lines, False, self.max_tokens, prefixes, corrected)
        found: Dict[int, List[Translation]] = {}
        start = time.perf_counter()
        batches = ([Piece(text, number) for number in batch] for batch in text.batches)
        for result in self.stream(batches, draw_keys=draw_keys(text.starts, documents, names)):
            found[result.line] = list(map(self.translation, result.hypotheses))
            progress(1)
        self.throughput.seconds += time.perf_counter() - start
        empty = sum(not translations[0].text for translations in found.values())
        if empty:
            logger.warning(f"{empty:,} sentences have an empty translation: an empty line that ends no document")
        sign = self.task.target_dictionary.unk_word
        unknown = sum(sign in translations[0].text for translations in found.values())
        if unknown:
            logger.warning(
                f"{unknown:,} sentences have {sign} in their translation, where the model knows no word or character: "
                "--unkpen 1000 keeps it out; models of data made with docnmt prepare --byte-fallback know all"
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
        prefixes: Sequence[Sequence[str]] = (),
        corrected: Sequence[Sequence[str]] = (),
    ) -> PreparedText:
        """Makes documents ready for :meth:`stream`.

        Args:
            documents, names, empty_lines: see :meth:`translate`.
            alone: every sentence is seen by itself, whatever the view says.
            max_tokens: real source tokens of a batch; None: all are one batch, which is to be divided elsewhere.
            prefixes, corrected: see :meth:`translate_lines`.

        Raises:
            InputError: a sentence that is too long for the model, named by document and line; a text in the place of a
                list of lines; others see :meth:`translate_lines`.
        """
        if isinstance(documents, str) or any(isinstance(lines, str) for lines in documents):
            raise InputError(
                "documents: a text where a list of lines is expected; give a list of documents, each a list of lines"
            )
        if corrected and not self.engine.decoder.looks_back:
            raise InputError(
                "--corrected: the model does not look back at translations, so that these would change nothing; leave "
                "it out, or take a model with --target-context-attention"
            )
        if corrected and (alone or self.task.view("context") == "none"):
            raise InputError("--corrected: without context nothing is seen of it; leave one of both out")
        names = names or [f"document {number}" for number in range(1, len(documents) + 1)]
        tokens: List[Tensor] = []
        starts = []
        for name, lines in zip(names, documents):
            starts.append(len(tokens))
            tokens += self.encoder.tokens(lines, name, empty_lines)
        dataset = self.task.documents_in_memory(tokens, alone)
        # A long document is a batch by itself; of a long window fairseq demands that it fits.
        longest = dataset.sizes.max(initial=1) if isinstance(dataset, ConcatenationDataset) else 1
        batches = self.task.get_batch_iterator(
            dataset,
            max_tokens=None if max_tokens is None else max(max_tokens, int(longest)),
            max_positions=self.max_positions,
            disable_iterator_cache=True,  # the task would keep every text that it ever saw
        ).frozen_batches
        whole = self.encoder.beside("--prefixes", documents, starts, prefixes)
        begun = {number: tokens[:-1].numpy() for number, tokens in whole.items()}
        seen = self.encoder.beside("--corrected", documents, starts, corrected)
        numbers = [list(map(int, batch)) for batch in batches]
        return PreparedText(starts, dataset, dataset.decoded_sentences(), numbers, alone, begun, seen)

    def stream(
        self,
        batches: Iterator[Optional[Sequence[Piece]]],
        live: bool = False,
        draw_keys: Optional[Mapping[int, Sequence[int]]] = None,
    ) -> Iterator[Result]:
        """Yields the sentences of pieces of texts as they are finished; those of different texts go side by side.

        A batch is asked for when there is room for its sentences: so texts may come while others are under way.

        Args:
            batches: what is encoded together; None: nothing right now, which ends the search if nothing is under way.
            live: batches come as they are made: all that are there are encoded, and take turns sentence by sentence.
            draw_keys: by line, what is drawn depends on; see :class:`~docnmt_fairseq.search.draws.Draws`.
        """
        penalty = None if self.search.unnormalized else self.search.lenpen
        for sentence, hypotheses in self.engine.run(map(self._sample, batches), live, draw_keys):
            sample = sentence.batch.sample
            text: PreparedText = sample["texts"][sentence.row]
            if not text.alone:
                source = sample["net_input"]["src_tokens"][sentence.row, None]
                (hypotheses,) = self.task.of_sentences(source, [hypotheses], penalty)
            self.throughput.sentences += 1
            self.throughput.tokens += len(hypotheses[0]["tokens"])
            yield Result(text, sentence.number, hypotheses)

    def translation(self, hypothesis: Hypothesis) -> Translation:
        """A hypothesis as text."""
        text = self.codec.decode(self.task.target_dictionary.string(hypothesis["tokens"].int()))
        return Translation(text, float(hypothesis["score"]))

    def _sample(self, pieces: Optional[Sequence[Piece]]) -> Optional[Dict[str, Any]]:
        if not pieces:
            return None
        sample = sample_of(pieces)
        return utils.move_to_cuda(sample) if self.cuda else sample
