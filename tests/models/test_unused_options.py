"""Options that are given and have no effect, as nothing in the model reads them: each is said, and no other."""

import logging

import pytest

from docnmt_fairseq.checkpoints import load_ensemble
from tests.support import toy

MEMORY, HAN_TARGET = ["--context-attention", "memory"], ["--target-context-attention", "han"]
CA_ATT = ["--decoder-context-attention", "ca-att"]
WITHOUT = "no mechanism of this model has that option"
UNREAD = {  # what is built beside the option, the option, and the reason
    "of another mechanism": (MEMORY, ["--tree-merge", "average"], WITHOUT),
    "selection of target sentences": (HAN_TARGET, ["--context-selection", "next"], WITHOUT),
    "selection in the decoder": (CA_ATT, ["--context-selection", "training-set"], WITHOUT),
    "number in the decoder": (CA_ATT, ["--context-sentences", "2"], WITHOUT),
    "encodings in the encoder": (["--context-attention", "ca-att"], ["--sentence-encoder", "mean"], WITHOUT),
    "placement without context": ([], ["--context-placement", "block"], "there is no --context-attention"),
    "layers without context": (CA_ATT, ["--context-layers", "[0]"], "there is no --context-attention"),
    "heads without context": ([], ["--context-heads", "4"], "there is no --context-attention"),
    "mechanism without layers": (["--encoder-layers", "0"], MEMORY, "the encoder has no layers"),
    "mechanism of the decoder without layers": (["--decoder-layers", "0"], CA_ATT, "the decoder has no layers"),
    "decoder layers": (MEMORY, ["--decoder-context-layers", "[0]"], "there is no --decoder-context-attention"),
    "rnn": ([*MEMORY, "--memory-without-rnn"], ["--memory-rnn", "lstm"], "--memory-without-rnn"),
    "all sentences": (
        ["--context-attention", "conditional", "--context-top-t", "0"], ["--context-top-p", "0.5"],
        "--context-top-t 0 keeps all sentences",
    ),
    "shared encoder": ([], ["--extra-encoder", "shared"], "there are no --extra-sources"),
    "layers of extra encoders": ([], ["--extra-encoder-layers", "2"], "there are no --extra-sources"),
    "indicator": ([], ["--token-chi-dim", "3"], "--token-embedding is plain"),
    "table of sentences": (
        ["--sentence-positions", "sinusoidal"], ["--max-sentence-positions", "9"],
        "--sentence-positions are not learned",
    ),
    "table of sections": (
        ["--paragraph-positions", "learned"], ["--max-section-positions", "9"],
        "no positions above those of paragraphs are learned",
    ),
}  # fmt: skip
READ = {
    "selection on both sides": [*MEMORY, *HAN_TARGET, "--context-selection", "next"],
    "number of target sentences": [*HAN_TARGET, "--context-sentences", "2"],
    "encodings in the decoder": [*CA_ATT, "--sentence-encoder", "mean"],
    "tables": ["--part-positions", "learned", "--max-section-positions", "9"],
    "tree": ["--context-attention", "tree", "--context-top-t", "3"],
}
DIM = ["--attention-dim", "3"]
RECURRENT_UNREAD = {
    "contexts": ([], ["--concatenated-contexts", "whole"], "--attention-combination is flat"),
    "width of contexts": (
        ["--attention-combination", "concatenation", "--concatenated-contexts", "whole"],
        ["--context-vector-dim", "6"], "--concatenated-contexts whole are not projected",
    ),
    "heads": ([], ["--decoder-attention-heads", "2"], "--combination-attention bahdanau has one head"),
    "layers of extra encoders": ([], ["--extra-encoder-layers", "2"], "there are no --extra-sources"),
    "space of a product": (["--combination-attention", "luong"], DIM, "luong has no space of its own"),
    "space of heads": (
        ["--attention-combination", "hierarchical", "--combination-attention", "dot-product"], DIM,
        "dot-product has no space of its own",
    ),
    "space of context vectors": (
        ["--share-combination-projections"], DIM,
        "with --share-combination-projections scores are computed in the space of context vectors",
    ),
    "place": (
        ["--decoder-cell", "conditional-gru"], ["--attend-with", "updated"],
        "conditional-gru attends between its two steps",
    ),
}  # fmt: skip


@pytest.fixture
def said(data_bin, caplog):
    """What is said to have no effect when a model is built."""

    def build(*options, **of_toy):
        logging.disable(logging.NOTSET)
        try:
            with caplog.at_level(logging.WARNING):
                toy.build(data_bin, *options, **of_toy)
        finally:
            logging.disable(logging.INFO)
        return [text for text in (record.getMessage() for record in caplog.records) if "has no effect" in text]

    return build


@pytest.mark.parametrize("name", UNREAD)
def test_an_option_that_nothing_reads_is_said(said, name):
    beside, option, reason = UNREAD[name]
    assert said(*beside, *option) == [f"{' '.join(option)} has no effect: {reason}"]


@pytest.mark.parametrize("name", READ)
def test_an_option_that_something_reads_is_not(said, name):
    assert said(*READ[name]) == []


RECURRENT_READ = {
    "space of scores": DIM,
    "space of the first step": ["--attention-combination", "hierarchical", "--share-combination-projections", *DIM],
    "space of the second step": ["--attention-combination", "hierarchical", "--combination-attention", "ca-att", *DIM],
}


@pytest.mark.parametrize("name", RECURRENT_UNREAD)
def test_so_for_recurrent_models(said, name):
    beside, option, reason = RECURRENT_UNREAD[name]
    found = said(*beside, *option, arch="document_rnn", tiny=[])
    assert found == [f"{' '.join(option)} has no effect: {reason}"]


@pytest.mark.parametrize("name", RECURRENT_READ)
def test_what_recurrent_models_read_is_not_said(said, name):
    assert said(*RECURRENT_READ[name], arch="document_rnn", tiny=[]) == []


@pytest.mark.parametrize("arch", ["document_rnn_multimodal_tiny", "document_rnn_zeng_tiny"])
def test_what_a_preset_sets_is_not_said_but_what_is_given_beside_it(said, arch):
    """The first sets where its cell does not attend, the other the width of a space that its score does not have."""
    assert said(arch=arch, tiny=[]) == []
    (only,) = said("--token-chi-dim", "3", arch=arch, tiny=[])
    assert only.startswith("--token-chi-dim 3 has no effect")


def test_target_tokens_that_see_all_sentences_ask_for_no_others(data_bin):
    """CA-ATT of the decoder reads the encodings of its document: no sentence need be drawn, or found to be similar."""
    _, _, model = toy.build(data_bin, *CA_ATT, "--context-selection", "training-set")
    mechanism = model.decoder.layers[1].context
    assert mechanism.drawn_contexts == mechanism.similar_contexts == 0 and not list(mechanism.plans())


def test_who_translates_is_told_nothing_about_training(data_bin, tmp_path, caplog):
    options = ["--context-attention", "conditional", "--selection-loss", "1", "--context-top-t", "2"]
    with caplog.at_level(logging.WARNING):
        trained = toy.train(data_bin, tmp_path, "--max-update", "1", *options)
        assert "--selection-loss 1: never acts" in caplog.text
        caplog.clear()
        load_ensemble(trained, data=data_bin)
        assert "--selection-loss" not in caplog.text
