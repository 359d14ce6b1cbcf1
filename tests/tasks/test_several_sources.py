"""Models with several sources through fairseq's commands."""

import shutil

import numpy as np
import pytest

from docnmt_fairseq.checkpoints import load_ensemble
from docnmt_fairseq.corpus.pipeline import TextCodec
from docnmt_fairseq.errors import InputError
from docnmt_fairseq.report.inspection import dataset_of_lines
from docnmt_fairseq.translate.translator import DocumentTranslator
from tests.support import toy
from tests.support.documents import write_lines
from tests.support.extra_sources import with_extra_sources

ALL = ["--extra-sources", "previous:2,text:mt,features:image"]
OF_DOCUMENT = ["--extra-sources", "previous,next:2,random"]
SEARCH = ["--beam", "2", "--max-len-b", "10"]


@pytest.fixture(scope="module")
def extra_bin(data_bin, tmp_path_factory):
    return with_extra_sources(data_bin, tmp_path_factory.mktemp("extra") / "bin")


@pytest.fixture(scope="module")
def all_sources(extra_bin, tmp_path_factory):
    """Returns a model with every kind of source after a few updates."""
    return toy.train(extra_bin, tmp_path_factory.mktemp("all"), *ALL, "--max-update", "6", "--save-interval", "100")


@pytest.fixture(scope="module")
def of_document(extra_bin, tmp_path_factory):
    """Returns a model with context sentences as sources after a few updates."""
    return toy.train(extra_bin, tmp_path_factory.mktemp("document"), *OF_DOCUMENT, "--max-update", "6")


def test_every_source_is_used(extra_bin, all_sources, tmp_path):
    expected = toy.generate(extra_bin, all_sources, *SEARCH).hypotheses
    alone = toy.generate(extra_bin, all_sources, *SEARCH, "--context", "none").hypotheses
    assert alone != expected and alone[6] == expected[6]  # a document of one sentence
    other = shutil.copytree(extra_bin, tmp_path / "bin")
    image = np.load(other / "test.image.npz")
    np.savez(other / "test.image.npz", values=-image["values"], offsets=image["offsets"])
    assert toy.generate(other, all_sources, *SEARCH).hypotheses != expected
    shutil.copytree(extra_bin, tmp_path / "text")
    for ending in ("bin", "idx"):
        shutil.copy(tmp_path / "text" / f"test.src-tgt.src.{ending}", tmp_path / "text" / f"test.src-tgt.mt.{ending}")
    assert toy.generate(tmp_path / "text", all_sources, *SEARCH).hypotheses != expected


def test_other_sources_than_in_training_are_refused(extra_bin, all_sources, of_document):
    with pytest.raises(InputError, match=r"--extra-sources next: the model was trained with previous:2,text:mt"):
        toy.generate(extra_bin, all_sources, "--extra-sources", "next")
    with pytest.raises(InputError):
        toy.generate(extra_bin, f"{all_sources}:{of_document}")


def test_text_alone_is_refused_if_sources_are_missing(extra_bin, all_sources, of_document, tmp_path):
    write_lines(tmp_path / "input", ["a b"])
    needed = pytest.raises(InputError)
    with needed:
        toy.interactive(extra_bin, all_sources, tmp_path / "input")
    with needed:
        dataset_of_lines(load_ensemble(all_sources, data=extra_bin), ["a b"], "input")
    translators = [
        DocumentTranslator(load_ensemble(path, data=extra_bin), TextCodec(extra_bin), cpu=True)
        for path in (of_document, all_sources)
    ]
    assert len(translators[0].translate([["a b", "c"]])[0]) == 2
    with needed:
        translators[1].translate([["a b"]])
