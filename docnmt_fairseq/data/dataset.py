"""fairseq dataset whose items are documents, or chunks of long ones, and whose batches are rows of sentences."""

from itertools import chain
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
from fairseq.data import FairseqDataset
from torch import Tensor
from torch.utils.data import get_worker_info

from docnmt_fairseq.batch.layout import DocumentLayout, PlanKey
from docnmt_fairseq.batch.ragged import Ragged
from docnmt_fairseq.data.chunking import (
    ChunkLimits,
    ContextDropout,
    Hidden,
    chunk_documents,
    pack_batches,
    running_total,
    target_documents,
)
from docnmt_fairseq.data.extra_sources import ExtraSourceBatch, lengths_of
from docnmt_fairseq.data.index import DocumentIndex, Lines, Split, name_of
from docnmt_fairseq.data.selected_context import TrainingSentences, drawn_chunk, drawn_rows, within_chunk

Sample = Dict[str, Any]  # a chunk from ``__getitem__``, or a batch from ``collater``


class DocumentDataset(FairseqDataset):
    """Chunks of documents; a sample id is the item number of a sentence in the data-bin, i.e. its line, from 0.

    Args:
        split: documents.
        pad, eos: ids of the padding and the end-of-sentence symbol, the same on both sides.
        limits: limits of chunks.
        with_context: False hides all context: every sentence is a document.
        context_dropout: share of chunks whose context is hidden.
        shuffle: visit the chunks in random order, as in training.
        seed: seed of the order.
        training_sentences: draws sentences for each sentence; a batch contains them after its documents, not counted
            by limits of tokens.

    Attributes:
        plans: attention plans that the model requests from a layout; computed when batches are collated.
        device: device of the model.
    """

    def __init__(
        self,
        split: Split,
        pad: int,
        eos: int,
        limits: ChunkLimits = ChunkLimits(),
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
        # Chunk boundaries depend on the source only, since a reference must not change the model's input; in training,
        # where memory is short, targets limit chunks as well.
        limited = self.source_sizes
        if shuffle and self.target_sizes is not None:
            limited = np.maximum(self.source_sizes, self.target_sizes)
        self.chunks = chunk_documents(self.index.documents, limited, limits, weights=self.source_sizes)
        self.skipped = np.zeros(0, dtype=np.int64)  # sentences too long for the model, ascending
        self.sizes = self._costs().max(axis=1)

    def _costs(self) -> np.ndarray:
        """Returns the tokens of every chunk, [P, columns]: source with context, target, rows of each extra source."""
        chunks = self.chunks
        source = running_total(self.source_sizes)
        start, end = (chunks.context_start, chunks.context_end) if self.with_context else (chunks.start, chunks.end)
        costs = [source[end] - source[start]]
        for sizes in ([] if self.target_sizes is None else [self.target_sizes]) + self.extra_sizes:
            total = running_total(sizes)
            costs.append(total[chunks.end] - total[chunks.start])
        return np.stack(costs, axis=1)

    def __len__(self) -> int:
        return len(self.chunks)

    def __getitem__(self, number: int) -> Sample:
        chunks, index = self.chunks, self.index
        start, end = int(chunks.start[number]), int(chunks.end[number])
        hidden = self.context_dropout.draw(self.epoch, number) if self.with_context else Hidden.ALL
        first, last = (start, end) if hidden else (int(chunks.context_start[number]), int(chunks.context_end[number]))
        rows = np.arange(first, last)
        if len(self.skipped):
            rows = rows[~np.isin(rows, self.skipped)]
        document = int(chunks.document[number])
        decoded = (rows >= start) & (rows < end)
        source = [self.src[int(item)] for item in index.items[rows]]
        training_sentences = None if hidden else self.training_sentences
        epoch = self.epoch if self.shuffle else 0  # new draws in training only
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
            "similar": None if self.similar is None else within_chunk(self.similar[index.items[rows]], rows),
        }

    def collater(self, samples: List[Sample]) -> Sample:
        """Returns fairseq's ordinary batch, sentences as rows, with ``net_input["layout"]``."""
        samples = [sample for sample in samples if len(sample["ids"])]
        if not samples:
            return {}
        drawn = None
        if self.training_sentences is not None:
            drawn = drawn_rows([(len(sample["source"]), sample["drawn"]) for sample in samples])
            samples = [*samples, drawn_chunk(samples)]
        source = [tokens for sample in samples for tokens in sample["source"]]
        decoded = np.concatenate([sample["decoded"] for sample in samples])
        opens = np.concatenate([sample["sentence_position"] == 0 for sample in samples])[decoded]
        targets = None
        if samples[0]["target"] is not None:
            targets = [tokens for sample in samples for tokens in sample["target"]]
        of_sources = zip(*(sample["extra"] for sample in samples))
        lines = [
            None if of_samples[0] is None else ExtraSourceBatch.join(list(chain.from_iterable(of_samples)))
            for of_samples in of_sources
        ]
        layout = self._layout(samples, source, decoded, targets, lines, drawn).with_plans(self.plans, self.device)
        if get_worker_info() is not None:  # one block of memory is transferred faster than many
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

    def _layout(
        self,
        samples: List[Sample],
        source: List[Tensor],
        decoded: np.ndarray,
        targets: Optional[List[Tensor]],
        lines: List[Optional[ExtraSourceBatch]],
        drawn: Optional[np.ndarray],
    ) -> DocumentLayout:
        """Returns the layout; every sentence of a chunk without context is a document."""
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
            context_tokens=torch.cat(context) if context else None,
            extra_lengths=lengths_of(lines) if lines else None,
            similar=None if self.similar is None else np.concatenate([sample["similar"] for sample in samples]),
            epoch=self.epoch if self.shuffle else 0,
            drawn=drawn,
            target_document=target_documents([(sample["hidden"], len(sample["ids"])) for sample in samples]),
        )

    def _targets(self, targets: List[Tensor], rows: Ragged) -> Tuple[Tensor, Tensor]:
        """Returns the target and the decoder input, the target shifted right after an end of sentence."""
        target = rows.pad(torch.cat(targets), self.pad)
        previous = torch.full_like(target, self.eos)
        previous[:, 1:] = target[:, :-1]
        previous[torch.arange(previous.size(1)) >= rows.lengths_tensor[:, None]] = self.pad
        return target, previous

    def too_long(self, max_source: int, max_target: int) -> np.ndarray:
        """Returns the sentences that exceed the model's maximum positions, ascending."""
        long = self.source_sizes > max_source
        if self.target_sizes is not None:
            long |= self.target_sizes > max_target
        return np.flatnonzero(long)

    def skip(self, sentences: np.ndarray) -> None:
        """Excludes sentences from their documents."""
        self.skipped = sentences

    def decoded_sentences(self) -> np.ndarray:
        """Returns the number of decoded sentences of every chunk, [P]."""
        if not len(self.skipped):
            return self.chunks.end - self.chunks.start
        decoded = np.ones(len(self.index.items), dtype=np.int32)
        decoded[self.skipped] = 0
        total = running_total(decoded)
        return total[self.chunks.end] - total[self.chunks.start]

    def num_tokens(self, number: int) -> int:
        return int(self.sizes[number])

    def ordered_indices(self) -> np.ndarray:
        """Returns the chunks in the order of the corpus, or shuffled for the epoch."""
        order = np.arange(len(self))
        return np.random.RandomState(self.seed + self.epoch).permutation(order) if self.shuffle else order

    def batch_by_size(
        self,
        indices: np.ndarray,
        max_tokens: Optional[int] = None,
        max_sentences: Optional[int] = None,
        required_batch_size_multiple: int = 1,
    ) -> List[np.ndarray]:
        """Returns batches of chunks; ``max_sentences`` (--batch-size) is a number of chunks.

        ``required_batch_size_multiple`` is ignored: it applies to padded batches, and fairseq would drop the last one.
        """
        return pack_batches(np.asarray(indices), self._costs(), max_tokens, max_sentences)

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        return not self.shuffle


def sentence_sizes(dataset: Lines, index: DocumentIndex) -> np.ndarray:
    """Returns the tokens of every sentence from the cached index, or a copy, as fairseq's sizes may be a view."""
    cached = index.sizes.get(name_of(dataset))
    if cached is not None:
        return cached
    return np.asarray(dataset.sizes)[index.items].astype(np.int32, copy=False)
