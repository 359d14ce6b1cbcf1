import numpy as np
from fairseq.data.indexed_dataset import MMapIndexedDataset

from docnmt_fairseq.data.index import DocumentIndex, Marks


def test_synthetic_side_is_what_fairseq_reads(tmp_path, monkeypatch):
    from benchmarks.speed import indexing

    monkeypatch.setattr(indexing, "CHUNK_DOCUMENTS", 20)  # several pieces
    indexing.make_side(tmp_path / "side", 3000)
    side = MMapIndexedDataset(str(tmp_path / "side"))
    lines = [side[i].numpy() for i in range(len(side))]
    assert len(lines) == 3000
    assert all(line[-1] == indexing.EOS and (line[:-1] > 3).all() for line in lines)
    marks = Marks.read(side, indexing.PARAGRAPH)
    assert marks.document_end.tolist() == [len(line) == 1 for line in lines]
    assert (marks.levels_ended > 0).tolist() == [line.tolist() == [indexing.PARAGRAPH, indexing.EOS] for line in lines]
    assert 0 < marks.levels_ended.sum() < (np.asarray(side.sizes) == 2).sum()  # one-word sentences, too
    index = DocumentIndex.build(marks, "side")
    assert len(index) == marks.document_end.sum()
    assert marks.document_end[-1]
