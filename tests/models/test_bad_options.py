"""Bad option values and combinations are reported by the name of the option."""

import re

import pytest

from docnmt_fairseq.errors import InputError
from tests.support import toy

SENTENCES = ["--context-attention", "sentence-encodings"]
MEMORY = ["--context-attention", "memory"]
TRANSFORMER = [
    (["--context-attention", "condtional"], "--context-attention condtional: must be one of none, ca-att"),
    ([*SENTENCES, "--context-placement", "replace"], "--context-placement replace"),
    ([*SENTENCES, "--context-layers", "5"], "--context-layers [5]"),
    ([*SENTENCES, "--context-heads", "3"], "--context-heads 3"),
    ([*MEMORY, "--context-sentences", "-1"], "--context-sentences -1"),
    (["--decoder-context-attention", "ca-att", "--decoder-context-layers", "1,2"], "--decoder-context-layers [1, 2]"),
    (["--target-context-attention", "memory"], "--target-context-attention memory: must be one of none, han"),
    (["--attention-combination", "serial", "--attention-sentinel"], "--attention-sentinel"),
]
RNN = [
    (["--share-decoder-input-output-embed", "--decoder-out-embed-dim", "4"], "--decoder-out-embed-dim 4"),
    (["--deep-output", "state"], "--decoder-out-embed-dim 7"),
    (["--chi-embed-dim", "3"], "--chi-embed-dim"),
    (["--chi-embed-dim", "3", "--combination-attention", "ca-att", "--extra-sources", "previous"], "--chi-embed-dim"),
]


@pytest.mark.parametrize(("options", "named"), TRANSFORMER, ids=[" ".join(options) for options, _ in TRANSFORMER])
def test_transformer_options(data_bin, options, named):
    with pytest.raises(InputError, match=re.escape(named)):
        toy.build(data_bin, *options)


@pytest.mark.parametrize(("options", "named"), RNN, ids=[" ".join(options) for options, _ in RNN])
def test_recurrent_options(data_bin, options, named):
    with pytest.raises(InputError, match=re.escape(named)):
        toy.build(data_bin, *options, arch="document_rnn", tiny=toy.TINY_RNN)


def test_options_of_other_mechanisms_are_reported(data_bin, caplog):
    toy.build(data_bin, *SENTENCES, "--sentence-encoder", "mean")
    assert "ignored" not in caplog.text
    toy.build(data_bin, *MEMORY, "--context-top-t", "2")
    assert "--context-top-t 2: ignored" in caplog.text
