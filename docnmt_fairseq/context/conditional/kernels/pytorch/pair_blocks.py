"""Pairs of a token and a kept sentence, in blocks of queries that attend to the tokens of one sentence together."""

from dataclasses import dataclass
from typing import Iterator, List, Optional

import numpy as np
import torch
from torch import Tensor

from docnmt_fairseq.batch.ragged import Ragged, cheapest_groups

BLOCK = 32  # queries that attend together; a sentence has about m·t
BUCKET_COST = 2**14  # cost of one more bucket of sentences, in pairs of a query and a key of one head


@dataclass(frozen=True)
class SentenceBucket:
    """Sentences of similar length, padded together."""

    sentences: int  # s
    width: int  # length of the longest sentence
    index: Tensor  # [s · width] token at every place; padding repeats the last one
    items: Tensor  # [tokens] the tokens, sentence by sentence
    real: Tensor  # [tokens] their places
    hidden: Optional[Tensor]  # [s, width] float32, −∞ at padding and 0 at tokens; None without padding

    @classmethod
    def of(cls, tokens: Ragged, rows: np.ndarray) -> "SentenceBucket":
        """Creates the bucket of some sentences."""
        index, padding = tokens.block(rows)
        real = np.flatnonzero(~padding)
        return cls(
            sentences=index.shape[0],
            width=index.shape[1],
            index=tokens.index(index.ravel()),
            items=tokens.index(index.ravel()[real]),
            real=tokens.index(real),
            hidden=tokens.index(np.where(padding, np.float32(-np.inf), np.float32(0))) if padding.any() else None,
        )

    def pad(self, packed: Tensor) -> Tensor:
        """Returns [s, H, width, d] from packed tokens [N, H, d]."""
        return packed.index_select(0, self.index).unflatten(0, (self.sentences, self.width)).transpose(1, 2)

    def unpad(self, padded: Tensor, packed: Tensor) -> None:
        """Writes [s, H, width, d] to packed tokens [N, H, d]."""
        items = padded.transpose(1, 2).flatten(0, 1)
        packed.index_copy_(0, self.items, items if self.hidden is None else items.index_select(0, self.real))


@dataclass(frozen=True)
class SentenceBuckets:
    """All sentences of a batch by length."""

    buckets: List[SentenceBucket]
    first: np.ndarray  # [buckets + 1] rank of each bucket's first sentence, then R
    place: Tensor  # [R + 1] rank by length of every sentence; the last entry is for −1, none
    ends: Tensor  # [buckets] ranks where the buckets end

    @classmethod
    def of(cls, tokens: Ragged, pairs: int) -> "SentenceBuckets":
        """Creates the buckets of a batch.

        Args:
            pairs: number of pairs of a token and a sentence per head.
        """
        area = np.arange(tokens.longest + 1) * (pairs / tokens.rows)  # pairs of a query and a key per sentence
        groups = cheapest_groups(tokens.lengths, area, BUCKET_COST)
        first = np.cumsum([0, *map(len, groups)])
        place = np.append(np.argsort(np.concatenate(groups)), tokens.rows)
        buckets = [SentenceBucket.of(tokens, rows) for rows in groups]
        return cls(buckets, first, tokens.index(place), tokens.index(first[1:]))


@dataclass(frozen=True)
class BucketBlocks:
    """Blocks of queries to the sentences of one bucket."""

    bucket: SentenceBucket  # the sentences
    heads: int  # H
    blocks: slice  # range of these b blocks among all
    query: Tensor  # [b · BLOCK] token · H + head of every slot
    group: Tensor  # [b] sentence in the bucket · H + head

    def results(self, slots: Tensor) -> Tensor:
        """Returns the part of these blocks, [b, BLOCK, ...], of a tensor over all slots."""
        return slots[self.blocks.start * BLOCK : self.blocks.stop * BLOCK].unflatten(0, (-1, BLOCK))

    def queries(self, rows: Tensor) -> Tensor:
        """Returns [b, BLOCK, ...] from [M·H, ...]."""
        return rows.index_select(0, self.query).unflatten(0, (-1, BLOCK))

    def keys(self, packed: Tensor) -> Tensor:
        """Returns [b, w, d] from packed tokens [N, H, d]."""
        return self.bucket.pad(packed).flatten(0, 1).index_select(0, self.group)

    def transposed_keys(self, packed: Tensor) -> Tensor:
        """Returns [b, d, w] from packed tokens [N, H, d]: small products are faster in this layout."""
        return self.bucket.pad(packed).flatten(0, 1).transpose(1, 2).contiguous().index_select(0, self.group)

    def hidden(self, dtype: torch.dtype) -> Optional[Tensor]:
        """Returns [b, 1, w], −∞ at padding and 0 at tokens; None without padding."""
        if self.bucket.hidden is None:
            return None
        sentence = self.group.div(self.heads, rounding_mode="floor")
        return self.bucket.hidden.to(dtype).index_select(0, sentence).unsqueeze(1)

    def sum_of_keys(self, blocks: Tensor, packed: Tensor) -> None:
        """Writes sums of [b, w, d] over the blocks of every sentence to packed tokens [N, H, d]."""
        groups = self.bucket.sentences * self.heads
        sums = blocks.new_zeros(groups, *blocks.shape[1:]).index_add_(0, self.group, blocks)
        self.bucket.unpad(sums.unflatten(0, (-1, self.heads)), packed)


@dataclass(frozen=True)
class PairBlocks:
    """Pairs (token, head, kept sentence) in blocks of ``BLOCK`` queries to one sentence and head, by length."""

    query: Tensor  # [blocks · BLOCK] token · H + head of every slot; 0 in filling slots
    slot: Tensor  # [M·H, t] slot of every pair; empty places share one slot after all blocks
    by_bucket: List[BucketBlocks]  # the blocks of each bucket that has any

    def new_slots(self, like: Tensor, *shape: int) -> Tensor:
        """Returns a new tensor over all slots, [blocks · BLOCK + 1, *shape]; the last slot, of no pair, is 0."""
        slots = like.new_empty(len(self.query) + 1, *shape)
        slots[-1] = 0
        return slots


def block_pairs(sentence: Tensor, buckets: SentenceBuckets) -> PairBlocks:
    """Returns the pairs of a selection in blocks.

    Args:
        sentence: [M, H, t] rows of the kept sentences, −1: none.
    """
    _, heads, t = sentence.shape
    device, groups = sentence.device, int(buckets.first[-1]) * heads
    group = buckets.place[sentence] * heads + torch.arange(heads, device=device)[:, None]
    small = torch.int16 if groups + heads < 2**15 else torch.int32  # faster to sort
    sorted_group, pair = torch.sort(group.flatten().to(small), stable=True)
    counts = torch.searchsorted(sorted_group, torch.arange(groups + 1, dtype=small, device=device)).diff()
    blocks = (counts + BLOCK - 1).div(BLOCK, rounding_mode="floor")
    last_block, last_pair = blocks.cumsum(0), counts.cumsum(0)
    sizes = torch.cat([last_block[buckets.ends * heads - 1], last_pair[-1:]])
    *ends, pairs = sizes.cpu().tolist()  # the only synchronisation with a GPU
    shift = (last_block - blocks) * BLOCK - (last_pair - counts)  # a group's first slot minus its first pair
    place = torch.full_like(pair, ends[-1] * BLOCK)
    place[:pairs] = torch.repeat_interleave(shift, counts, output_size=pairs).add_(torch.arange(pairs, device=device))
    slot = torch.empty_like(place).index_copy_(0, pair, place)
    query = torch.zeros(ends[-1] * BLOCK, dtype=torch.long, device=device)
    query.index_copy_(0, place[:pairs], pair[:pairs].div(t, rounding_mode="floor"))
    group_of_block = torch.repeat_interleave(torch.arange(groups, device=device), blocks, output_size=ends[-1])
    return PairBlocks(query, slot.view(-1, t), list(_by_bucket(query, group_of_block, ends, buckets, heads)))


def _by_bucket(
    query: Tensor, group: Tensor, ends: List[int], buckets: SentenceBuckets, heads: int
) -> Iterator[BucketBlocks]:
    """Yields the blocks of each bucket, given the block numbers where buckets end."""
    for bucket, first, start, end in zip(buckets.buckets, buckets.first.tolist(), [0, *ends], ends):
        if end > start:
            queries = query[start * BLOCK : end * BLOCK]
            yield BucketBlocks(bucket, heads, slice(start, end), queries, group[start:end] - first * heads)
