"""A fairseq dataset whose items are documents (or pieces of long ones) and whose batches are rows of sentences."""

from itertools import chain
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
from fairseq.data import FairseqDataset
from torch import Tensor
from torch.utils.data import get_worker_info

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.data.batching import pack_batches
from docnmt_fairseq.data.context_dropout import ContextDropout, Hidden, target_documents
from docnmt_fairseq.data.extra_sources import ExtraSourceBatch, lengths_of
from docnmt_fairseq.data.index import DocumentIndex, Lines, name_of
from docnmt_fairseq.data.pieces import PieceLimits, cut, running_total
from docnmt_fairseq.data.similar import within_piece
from docnmt_fairseq.data.split import Split
from docnmt_fairseq.data.training_sentences import TrainingSentences, drawn_piece, drawn_rows

Sample = Dict[str, Any]  # one piece as ``__getitem__`` gives it, or a batch of them as ``collater`` does


class DocumentDataset(FairseqDataset):
    """Pieces of documents; a sample id is the item number of a sentence in the data-bin, i.e. its line, from 0.

    Args:
        split: the documents.
        pad, eos: numbers of the padding and the end-of-sentence symbol, the same on both sides.
        limits: of pieces.
        with_context: False hides all context: every sentence is a document of its own.
        context_dropout: of how many pieces context is hidden.
        shuffle: visit the pieces in random order, as training does.
        seed: of the order.
        training_sentences: draws sentences for each, which a batch then holds as documents of their own, behind its
            documents; limits of tokens do not count them.

    Attributes:
        plans: those that the model will ask a batch's layout for; they are made where batches are collated.
        device: where the model computes with them.
    """

    def __init__(
        self,
        split: Split,
        pad: int,
        eos: int,
        limits: PieceLimits = PieceLimits(),
        with_context: bool = True,
        context_dropout: ContextDropout = ContextDropout(),
        shuffle: bool = False,
        seed: int = 1,
        training_sentences: Optional[TrainingSentences] = None,
    ):
        self.src, self.tgt = split.source, split.target  # the names that fairseq-generate asks for
        self.index, self.name = split.index, split.name
        self.extra_sources, self.similar = split.extra, split.similar
        self.pad, self.eos = pad, eos
        self.with_context = with_context
        self.context_dropout = context_dropout
        self.shuffle = shuffle
        self.seed = seed
        self.training_sentences = training_sentences
        self.plans: Sequence[PlanKey[Any]] = ()
        self.device = torch.device("cpu")
        self.epoch = 1
        self.source_sizes = sentence_sizes(self.src, self.index)
        self.target_sizes = None if self.tgt is None else sentence_sizes(self.tgt, self.index)
        self.extra_sizes = [sentence_sizes(lines, self.index) for lines in split.extra if lines is not None]
        # Where pieces begin is the source's affair: a reference must not change what a model sees. Only in training,
        # where memory is short and nothing depends on it, pieces are limited by targets, too.
        limited = self.source_sizes
        if shuffle and self.target_sizes is not None:
            limited = np.maximum(self.source_sizes, self.target_sizes)
        self.pieces = cut(self.index.documents, limited, limits, weights=self.source_sizes)
        self.skipped = np.zeros(0, dtype=np.int64)  # sentences that are too long for the model, ascending
        self.sizes = self._costs().max(axis=1)

    def _costs(self) -> np.ndarray:
        """The tokens of every piece, [P, columns]: source with context, target, rows of each extra source."""
        pieces = self.pieces
        source = running_total(self.source_sizes)
        start, end = (pieces.context_start, pieces.context_end) if self.with_context else (pieces.start, pieces.end)
        costs = [source[end] - source[start]]
        for sizes in ([] if self.target_sizes is None else [self.target_sizes]) + self.extra_sizes:
            total = running_total(sizes)
            costs.append(total[pieces.end] - total[pieces.start])
        return np.stack(costs, axis=1)

    def __len__(self) -> int:
        return len(self.pieces)

    def __getitem__(self, number: int) -> Sample:
        pieces, index = self.pieces, self.index
        start, end = int(pieces.start[number]), int(pieces.end[number])
        hidden = self.context_dropout.draw(self.epoch, number) if self.with_context else Hidden.ALL
        first, last = (start, end) if hidden else (int(pieces.context_start[number]), int(pieces.context_end[number]))
        rows = np.arange(first, last)
        if len(self.skipped):
            rows = rows[~np.isin(rows, self.skipped)]
        document = int(pieces.document[number])
        decoded = (rows >= start) & (rows < end)
        source = [self.src[int(item)] for item in index.items[rows]]
        training_sentences = None if hidden else self.training_sentences
        epoch = self.epoch if self.shuffle else 0  # drawn anew in training only
        return {
            "hidden": hidden,
            "ids": index.items[rows[decoded]].astype(np.int64),
            "decoded": decoded,
            "source": source,
            "drawn": [training_sentences.drawn(tokens, epoch) for tokens in source] if training_sentences else [],
            "target": None if self.tgt is None else [self.tgt[int(item)] for item in index.items[rows[decoded]]],
            "extra": [
                None if lines is None else [lines[int(item)] for item in index.items[rows[decoded]]]
                for lines in self.extra_sources
            ],
            "sentence_position": rows - index.documents[document],
            "unit_position": index.unit_positions(document, first, last)[:, rows - first],
            "similar": None if self.similar is None else within_piece(self.similar[index.items[rows]], rows),
        }

    def collater(self, samples: List[Sample]) -> Sample:
        """fairseq's ordinary batch, sentences as rows, with ``net_input["layout"]`` beside them."""
        samples = [sample for sample in samples if len(sample["ids"])]
        if not samples:
            return {}
        drawn = None
        if self.training_sentences is not None:
            drawn = drawn_rows([(len(sample["source"]), sample["drawn"]) for sample in samples])
            samples = [*samples, drawn_piece(samples)]
        source = [tokens for sample in samples for tokens in sample["source"]]
        decoded = np.concatenate([sample["decoded"] for sample in samples])
        opens = np.concatenate([sample["sentence_position"] == 0 for sample in samples])[decoded]
        targets = None
        if samples[0]["target"] is not None:
            targets = [tokens for sample in samples for tokens in sample["target"]]
        lines = self._lines(samples)
        layout = self._layout(samples, source, decoded, targets, lines, drawn).with_plans(self.plans, self.device)
        if get_worker_info() is not None:  # one piece of memory is handed over faster than a hundred
            layout = layout.gathered()
        src_tokens = layout.decoded_tokens.pad(torch.cat([source[row] for row in np.flatnonzero(decoded)]), self.pad)
        net_input: Dict[str, Any] = {
            "src_tokens": src_tokens,
            "src_lengths": layout.decoded_tokens.lengths_tensor,
            "layout": layout,
        }
        if self.extra_sources:
            net_input["extra_sources"] = lines
        target = None
        if targets is not None:
            target, net_input["prev_output_tokens"] = self._targets(targets, layout.target_tokens)
        return {
            "id": torch.from_numpy(np.concatenate([sample["ids"] for sample in samples])),
            "opens_document": torch.from_numpy(opens),
            "nsentences": int(decoded.sum()),
            "ntokens": (layout.decoded_tokens if targets is None else layout.target_tokens).total,
            "net_input": net_input,
            "target": target,
        }

    def _lines(self, samples: List[Sample]) -> List[Optional[ExtraSourceBatch]]:
        """The batch's data of every extra source, None where the document holds it."""
        of_sources = zip(*(sample["extra"] for sample in samples))
        return [
            None if of_samples[0] is None else ExtraSourceBatch.join(list(chain.from_iterable(of_samples)))
            for of_samples in of_sources
        ]

    def _layout(
        self,
        samples: List[Sample],
        source: List[Tensor],
        decoded: np.ndarray,
        targets: Optional[List[Tensor]],
        lines: List[Optional[ExtraSourceBatch]],
        drawn: Optional[np.ndarray],
    ) -> DocumentLayout:
        """The layout; a piece without context falls into documents of one sentence."""
        documents, sentence, units = [], [], []
        for sample in samples:
            rows = len(sample["source"])
            documents.append(np.ones(rows, dtype=np.int64) if sample["hidden"] else np.array([rows]))
            seen = 0 if sample["hidden"] else 1
            sentence.append(sample["sentence_position"] * seen)
            units.append(sample["unit_position"] * seen)
        context = [tokens for row, tokens in enumerate(source) if not decoded[row]]
        return DocumentLayout.of(
            np.array([len(tokens) for tokens in source]),
            np.concatenate(documents),
            np.concatenate(sentence),
            np.concatenate(units, axis=1),
            None if targets is None else np.array([len(tokens) for tokens in targets]),
            None if decoded.all() else np.flatnonzero(decoded),
            torch.cat(context) if context else None,
            lengths_of(lines),
            similar=None if self.similar is None else np.concatenate([sample["similar"] for sample in samples]),
            epoch=self.epoch if self.shuffle else 0,
            drawn=drawn,
            target_document=target_documents([(sample["hidden"], len(sample["ids"])) for sample in samples]),
        )

    def _targets(self, targets: List[Tensor], rows: Ragged) -> Tuple[Tensor, Tensor]:
        """The target and the decoder's input, which is the target moved right behind an end of sentence."""
        target = rows.pad(torch.cat(targets), self.pad)
        previous = torch.full_like(target, self.pad)
        previous[:, 1:] = target[:, :-1]
        previous[:, 0] = self.eos
        last = rows.lengths_tensor
        previous[torch.arange(previous.size(1)) >= last[:, None]] = self.pad
        return target, previous

    def too_long(self, max_source: int, max_target: int) -> np.ndarray:
        """The sentences that are longer than the model allows, ascending."""
        long = self.source_sizes > max_source
        if self.target_sizes is not None:
            long |= self.target_sizes > max_target
        return np.flatnonzero(long)

    def skip(self, sentences: np.ndarray) -> None:
        """Leaves sentences out of their documents, neither encoded nor decoded."""
        self.skipped = sentences

    def decoded_sentences(self) -> np.ndarray:
        """How many sentences of every piece are decoded, [P]."""
        if not len(self.skipped):
            return self.pieces.end - self.pieces.start
        decoded = np.ones(len(self.index.items), dtype=np.int32)
        decoded[self.skipped] = 0
        total = running_total(decoded)
        return total[self.pieces.end] - total[self.pieces.start]

    def num_tokens(self, number: int) -> int:
        """The cost of a piece in tokens."""
        return int(self.sizes[number])

    def num_tokens_vec(self, numbers: np.ndarray) -> np.ndarray:
        """The costs of pieces in tokens."""
        return self.sizes[numbers]

    def size(self, number: int) -> int:
        """The cost of a piece in tokens."""
        return int(self.sizes[number])

    def ordered_indices(self) -> np.ndarray:
        """The pieces in the order of the corpus, or shuffled anew for every epoch."""
        order = np.arange(len(self))
        return np.random.RandomState(self.seed + self.epoch).permutation(order) if self.shuffle else order

    def batch_by_size(
        self,
        indices: np.ndarray,
        max_tokens: Optional[int] = None,
        max_sentences: Optional[int] = None,
        required_batch_size_multiple: int = 1,
    ) -> List[np.ndarray]:
        """Batches of pieces; ``max_sentences`` (--batch-size) counts documents, the examples here.

        ``required_batch_size_multiple`` means rows of equal shape, which packed batches do not have; fairseq would
        drop the last batch for it.
        """
        return pack_batches(np.asarray(indices), self._costs(), max_tokens, max_sentences)

    def set_epoch(self, epoch: int) -> None:
        """Called by fairseq at the start of an epoch: context dropout is drawn anew."""
        self.epoch = epoch

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        """False while shuffling: documents meet other documents in every epoch."""
        return not self.shuffle

    @property
    def supports_prefetch(self) -> bool:
        """False: memory maps need none."""
        return False


def sentence_sizes(dataset: Lines, index: DocumentIndex) -> np.ndarray:
    """The tokens of every sentence, kept with the index, or a copy: fairseq's are a view that dies with its dataset."""
    kept = index.sizes.get(name_of(dataset))
    if kept is not None:
        return kept
    return np.asarray(dataset.sizes)[index.items].astype(np.int32, copy=False)
