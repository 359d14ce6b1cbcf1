"""Order of sentences: batch after batch, or alternating for live batches."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from docnmt_fairseq.search.sentence_queue import SentenceQueue


class Decoder(SimpleNamespace):
    """Decoder that remembers what was encoded."""

    looks_back = False

    def encode(self, sample):
        self.encoded.append(int(sample["id"][0]))


def batch(first, *lengths):
    ids = torch.arange(first, first + len(lengths))
    return {"id": ids, "net_input": {"src_lengths": torch.tensor(lengths)}}


def numbers(queue, count):
    return [sentence.number for sentence in queue.take(count)]


def test_batches_are_encoded_on_demand():
    decoder = Decoder(encoded=[])
    queue = SentenceQueue(iter([batch(0, 1, 3, 2), {}, batch(10, 5), batch(20, 9)]), decoder)
    assert numbers(queue, 2) == [1, 2] and decoder.encoded == [0]
    assert numbers(queue, 2) == [0] and decoder.encoded == [0, 10]  # never of two batches together
    assert [numbers(queue, 9) for _ in range(3)] == [[10], [20], []]


@pytest.mark.parametrize("live", [False, True])
def test_live_batches_alternate(live):
    decoder, come = Decoder(encoded=[]), [batch(0, *[5] * 6)]
    queue = SentenceQueue(iter(lambda: come.pop(0) if come else None, "never"), decoder, live)
    assert numbers(queue, 2) == [0, 1]
    come += [batch(10, 3), batch(20, 4, 4, 4)]
    found = [numbers(queue, 2) for _ in range(6)]
    in_turns = [[2, 3], [10], [20, 21], [4, 5], [22], []]
    assert found == (in_turns if live else [[2, 3], [4, 5], [10], [20, 21], [22], []])


def test_device_is_read_once_per_batch():
    documents = SimpleNamespace(decoded_document=np.array([0, 0, 0, 1]))
    sample = batch(10, 5, 6, 7, 8)
    sample["net_input"]["layout"] = documents
    decoder = Decoder(encoded=[], looks_back=True, remember=lambda *done: None)
    queue = SentenceQueue(iter([sample]), decoder)
    waiting = queue.take(9)
    sample["id"] = sample["net_input"]["src_lengths"] = None
    found = [(one.number, one.source_tokens) for one in waiting]
    while waiting:
        queue.finished(waiting[0].batch, waiting[:1])
        waiting = [*waiting[1:], *queue.take(9)]
        found += [(one.number, one.source_tokens) for one in waiting if (one.number, one.source_tokens) not in found]
    assert sorted(found) == [(10, 5), (11, 6), (12, 7), (13, 8)]
