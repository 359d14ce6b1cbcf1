import json

import numpy as np
import pytest
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
    assert marks.paragraph_end.tolist() == [line.tolist() == [indexing.PARAGRAPH, indexing.EOS] for line in lines]
    assert 0 < marks.paragraph_end.sum() < (np.asarray(side.sizes) == 2).sum()  # one-word sentences, too
    index = DocumentIndex.build(marks, "side")
    assert len(index) == marks.document_end.sum()
    assert marks.document_end[-1]


def _log(path, *runs):
    lines = []
    for records in runs:
        lines.append("2026-01-01 | INFO | fairseq_cli.train | num. shared model params: 1,200 (num. trained: 1,200)")
        lines += [f"2026-01-01 | INFO | {kind} | {json.dumps(record)}" for kind, record in records]
    path.write_text("\n".join(lines), encoding="utf-8")


def test_report_reads_a_log_of_an_interrupted_training(tmp_path):
    from benchmarks.experiments import real_text_report

    def inner(update, nll, wall):
        return "train_inner", {"num_updates": str(update), "nll_loss": str(nll), "wall": str(wall)}

    valid = ("valid", {"valid_num_updates": "3", "valid_nll_loss": "6.5"})
    _log(tmp_path / "log", [inner(1, 9, 10), inner(2, 8, 20)], [inner(2, 7, 5), inner(3, 6, 8), valid])
    assert real_text_report.curve(tmp_path / "log", "train_inner", "") == {1: 9, 2: 7, 3: 6}
    assert real_text_report.curve(tmp_path / "log", "valid", "valid_") == {3: 6.5}
    assert real_text_report.loss_of(tmp_path / "log") == 6.5
    assert real_text_report.seconds_of(tmp_path / "log") == 28


@pytest.mark.parametrize("documents, line", [(1, 2), (2, 5), (3, None), (0, None), (9, None)])
def test_test_set_is_split_between_documents(documents, line):
    from benchmarks.experiments import real_text_report

    assert real_text_report.split_line(["a", "", "b", "c", "", "d", ""], documents) == line
