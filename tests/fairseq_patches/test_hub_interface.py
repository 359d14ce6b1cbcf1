"""The hub interface encodes lines as fairseq-interactive does: boundaries, and language tokens first."""

import json
import shutil

import pytest

from docnmt_fairseq.errors import InputError
from docnmt_fairseq.models.transformer.model import DocumentTransformer
from tests.support import toy
from tests.support.documents import write_lines

LINES = ["a b c", "<p>", "d e", "<p> <p>", "c", "", "e a"]
SUBWORDS = {"bpe": "characters"}  # makes three unknown words of a mark


@pytest.fixture(scope="module")
def begun(data_bin, tmp_path_factory):
    """Returns a data-bin whose source begins with a language token, and a model."""
    folder = tmp_path_factory.mktemp("hub")
    shutil.copytree(data_bin, folder / "bin")
    (folder / "bin" / "language-tokens.json").write_text(json.dumps({"src": "e"}))
    options = ["--max-update", "20", "--sentence-positions", "learned"]
    return folder / "bin", toy.train(folder / "bin", folder, *options, arch="document_transformer_conditional")


def hub_of(data, checkpoint, **options):
    return DocumentTransformer.from_pretrained(str(checkpoint.parent), checkpoint.name, str(data), **options)


def test_boundaries_and_language_tokens(begun):
    hub = hub_of(*begun, **SUBWORDS)
    for line in ["<p>", "<p> <p>", "", " <p>\n"]:
        assert hub.encode(line).tolist() == [*(hub.src_dict.index(mark) for mark in line.split()), hub.src_dict.eos()]
    assert hub.src_dict[int(hub.encode("a b c")[0])] == "e"


def test_translations_are_those_of_fairseq_interactive(begun, tmp_path):
    data, checkpoint = begun
    write_lines(tmp_path / "lines", LINES)
    typed = toy.interactive(data, checkpoint, tmp_path / "lines", "--buffer-size", "7", "--beam", "5")
    expected = [text for _, (text, _) in sorted(typed.hypotheses.items())]
    assert hub_of(data, checkpoint).translate(LINES) == expected and len(expected) == 4


LONG = " ".join("a" * 1200)


@pytest.mark.parametrize("failing", [[LONG], ["b c", "<p>", LONG], ["b c", "", "d", LONG]])
def test_a_call_that_fails_does_not_change_the_open_document(begun, failing):
    undisturbed, hub = hub_of(*begun), hub_of(*begun)
    expected = [undisturbed.translate(lines) for lines in (["a b c"], ["d e"], ["", "e a"])]
    assert hub.translate(["a b c"]) == expected[0]
    with pytest.raises(InputError):
        hub.translate(failing)
    assert hub.translate(["d e"]) == expected[1]

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    hub.task.inference_step = interrupted
    with pytest.raises(KeyboardInterrupt):
        hub.translate(["b", "", "c"])
    del hub.task.inference_step
    assert hub.translate(["", "e a"]) == expected[2]


def test_skipped_sentences_have_an_empty_translation(begun):
    hub = hub_of(*begun)
    shown = ["a b c", "<p>", "d e", "", "c"]
    first, second, third = hub.translate(shown)
    hub.translate([""])
    lines = [LONG, "a b c", LONG, "<p>", "d e", "", LONG, "c"]
    assert hub.translate(lines, skip_invalid_size_inputs=True) == ["", first, "", second, "", third]
    assert hub.translate([LONG], skip_invalid_size_inputs=True) == [""]
    assert hub.translate(LONG, skip_invalid_size_inputs=True) == ""
    assert len(hub.translate(["b"])) == 1
