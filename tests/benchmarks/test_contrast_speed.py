"""The ways of contrast_speed.py ask the same and get the same scores."""

from argparse import Namespace

from benchmarks.lib.preprocess import fairseq_preprocess
from docnmt_fairseq.corpus.synth import SynthOptions, write_corpus
from tests.support import toy


def test_all_ways_give_the_same_scores(tmp_path, monkeypatch):
    from benchmarks.speed import contrast_speed

    write_corpus(SynthOptions(train_documents=40, valid_documents=1, test_documents=2), tmp_path)
    arguments = ["-s", "src", "-t", "tgt", "--destdir", str(tmp_path / "bin"), "--joined-dictionary"]
    arguments += [f"--{split}pref={tmp_path / split}" for split in ("train", "test")]
    fairseq_preprocess(arguments)
    context = ["--context-attention", "conditional", "--context-init", "xavier", "--max-update", "2"]
    checkpoint = toy.train(tmp_path / "bin", tmp_path / "model", *context)
    found = contrast_speed.measure(
        Namespace(
            items=tmp_path / "test.phenomena.tsv",
            data=tmp_path / "bin",
            path=str(checkpoint),
            every=9,
            rounds=1,
            max_tokens=200,
        )
    )
    assert found["difference"] < 1e-4
    assert 2 * len(range(0, found["items"], 9)) <= found["alone"] < found["candidates"]
    assert {way: len(seconds) for way, seconds in found["seconds"].items()} == dict.fromkeys(contrast_speed.WAYS, 1)
